<?php

declare(strict_types=1);

namespace Outboard\Tests\Laravel;

use Illuminate\Container\Container;
use Illuminate\Database\Capsule\Manager;
use Outboard\Laravel\RollBack;
use PHPUnit\Framework\TestCase;

final class RollBackTest extends TestCase
{
    public function testAnOpenTransactionIsRolledBackAfterTheRequest(): void
    {
        if (!class_exists(Manager::class) && !@include_once 'Illuminate/Database/autoload.php') {
            self::markTestSkipped('Laravel is not installed');
        }
        $capsule = new Manager();
        $capsule->addConnection(['driver' => 'sqlite', 'database' => ':memory:']);
        $database = $capsule->getDatabaseManager();
        $container = new Container();
        $container->singleton('db', static fn () => $database);
        $container->make('db');
        $connection = $database->connection();
        $connection->statement('CREATE TABLE t (n)');
        $connection->beginTransaction();
        $connection->beginTransaction();
        $connection->insert('INSERT INTO t VALUES (1)');

        (new RollBack())->handle((object) ['sandbox' => $container]);

        self::assertSame(0, $connection->transactionLevel());
        self::assertFalse($connection->getPdo()->inTransaction());
        self::assertSame(0, $connection->table('t')->count());
    }
}
