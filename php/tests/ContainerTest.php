<?php

declare(strict_types=1);

namespace Outboard\Tests;

use Outboard\Container;
use PHPUnit\Framework\TestCase;

final class ContainerTest extends TestCase
{
    public function testSharedServicesAreTheWorkersAndScopedOnesTheRequests(): void
    {
        $worker = (new Container())
            ->share(\ArrayObject::class, static fn () => new \ArrayObject())
            ->scoped(\SplStack::class, static fn () => new \SplStack());
        [$one, $two] = [$worker->scope(), $worker->scope()];
        self::assertSame($one->get(\ArrayObject::class), $two->get(\ArrayObject::class));
        self::assertSame($one->get(\SplStack::class), $one->get(\SplStack::class));
        self::assertNotSame($one->get(\SplStack::class), $two->get(\SplStack::class));
    }

    public function testOtherClassesAreCreatedByTheirConstructors(): void
    {
        $scope = (new Container())->scope(new \ArrayObject([1]));
        $holder = $scope->get(Holder::class);
        self::assertSame($scope->get(\ArrayObject::class), $holder->held);
        self::assertNotSame($holder, $scope->get(Holder::class));
    }

    public function testASharedServiceCannotUseAScopedOne(): void
    {
        $worker = (new Container())
            ->share(Holder::class, static fn (Container $services) => new Holder($services->get(\ArrayObject::class)))
            ->scoped(\ArrayObject::class, static fn () => new \ArrayObject());
        $this->expectExceptionMessage('ArrayObject is a service of requests');
        $worker->scope()->get(Holder::class);
    }

    public function testAnUnknownServiceIsNamedInTheError(): void
    {
        $this->expectExceptionMessage('there is no service or class nothing');
        (new Container())->get('nothing');
    }
}

final class Holder
{
    public function __construct(public readonly \ArrayObject $held)
    {
    }
}
