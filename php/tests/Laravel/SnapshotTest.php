<?php

declare(strict_types=1);

namespace Outboard\Tests\Laravel;

use Illuminate\Contracts\Foundation\Application;
use Outboard\Laravel\Snapshot;
use PHPUnit\Framework\TestCase;

final class SnapshotTest extends TestCase
{
    public function testElsewhereTheApplicationIsLeftAlone(): void
    {
        if (!interface_exists(Application::class) && !@include_once 'Illuminate/autoload.php') {
            self::markTestSkipped('Laravel is not installed');
        }
        self::assertFalse(function_exists('Outboard\snapshot'));
        $app = $this->createMock(Application::class);
        $app->expects(self::never())->method(self::anything());
        Snapshot::take($app);
    }
}
