<?php

declare(strict_types=1);

namespace Outboard\Tests\Mvc;

use Outboard\Mvc\Rule\Range;
use PHPUnit\Framework\TestCase;

final class RuleTest extends TestCase
{
    public function testARangeAcceptsOnlyNumbers(): void
    {
        $rule = new Range(1, 9.5);
        self::assertNull($rule->check(9.5));
        self::assertNull($rule->check('1'));
        self::assertSame('is not between 1 and 9.5', $rule->check(10));
        self::assertSame('is not between 1 and 9.5', $rule->check('5 pieces'));
        self::assertSame('is not between 1 and 9.5', $rule->check(true));
    }
}
