<?php

declare(strict_types=1);

namespace Outboard\Tests\Symfony;

use Outboard\Symfony\Runtime;
use PHPUnit\Framework\TestCase;
use Symfony\Component\Runtime\Runner\Symfony\HttpKernelRunner;

final class RuntimeTest extends TestCase
{
    public function testOutsideAWorkerItIsSymfonysOwn(): void
    {
        $runtime = new Runtime(['disable_dotenv' => true, 'error_handler' => false, 'outboard_loop_max' => '5']);
        self::assertInstanceOf(HttpKernelRunner::class, $runtime->getRunner(new RecordingKernel()));
    }
}
