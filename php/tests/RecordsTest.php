<?php

declare(strict_types=1);

namespace Outboard\Tests;

use Outboard\Cache\InvalidKey;
use Outboard\Cache\ItemPool;
use Outboard\Cache\SimpleCache;
use Outboard\Records;
use Outboard\Session\Handler;
use Outboard\Testing\FakeRecords;
use PHPUnit\Framework\TestCase;

final class RecordsTest extends TestCase
{
    public function testAValueIsReturnedUnchangedUntilItExpires(): void
    {
        $records = new FakeRecords();
        $cache = new SimpleCache($records);
        $cache->set('a', ['x' => 1.5, 'y' => null], 10);
        $cache->set('none', null);
        self::assertSame(['x' => 1.5, 'y' => null], $cache->get('a'));
        self::assertTrue($cache->has('none'));
        self::assertSame('default', $cache->get('b', 'default'));
        $records->now = 10.0;
        self::assertNull($cache->get('a'));
        $cache->set('none', 'x', 0);
        self::assertFalse($cache->has('none'));
    }

    public function testSeveralAreReadAndWrittenAtOnce(): void
    {
        $cache = new SimpleCache(new FakeRecords());
        $cache->setMultiple(['a' => 1, '7' => 2], new \DateInterval('PT1M'));
        self::assertSame(['a' => 1, 'x' => 0, 7 => 2], $cache->getMultiple(['a', 'x', '7'], 0));
        $cache->deleteMultiple(['a']);
        self::assertFalse($cache->has('a'));
    }

    public function testClearingLeavesOtherPrefixes(): void
    {
        $records = new FakeRecords();
        $records->putMany(['order:1' => 'stored']);
        $cache = new SimpleCache($records);
        $cache->set('a', 1);
        $cache->clear();
        self::assertFalse($cache->has('a'));
        self::assertSame(['order:1' => 'stored'], $records->getMany(['order:1']));
    }

    public function testReservedCharactersAreRefused(): void
    {
        $this->expectException(InvalidKey::class);
        (new SimpleCache(new FakeRecords()))->get('a:b');
    }

    public function testAKeyMayBeAsLongAsTheNameOfARecord(): void
    {
        $records = new FakeRecords();
        $longest = str_repeat('k', Records::ID_MAX_BYTES - strlen('cache:'));
        (new SimpleCache($records))->set($longest, 1);
        self::assertTrue((new ItemPool($records))->hasItem($longest));
        $this->expectException(InvalidKey::class);
        (new SimpleCache($records))->get($longest . 'k');
    }

    public function testTheKeyOfAnItemMayNotBeLongerEither(): void
    {
        $this->expectException(InvalidKey::class);
        (new ItemPool(new FakeRecords()))->getItem(str_repeat('k', Records::ID_MAX_BYTES));
    }

    public function testAnItemIsSavedAtOnceOrLater(): void
    {
        $pool = new ItemPool(new FakeRecords());
        $item = $pool->getItem('a');
        self::assertFalse($item->isHit());
        $pool->saveDeferred($item->set('later'));
        self::assertSame('later', $pool->getItem('a')->get());
        $pool->save($pool->getItem('b')->set('now')->expiresAfter(60));
        self::assertTrue($pool->hasItem('b'));
        $pool->deleteItems(['a', 'b']);
        self::assertFalse($pool->hasItem('a'));
    }

    public function testASessionIsOneRequestsAtATime(): void
    {
        $records = new FakeRecords();
        [$first, $second] = [new Handler($records), new Handler($records)];
        self::assertSame('', $first->read('id'));
        self::assertFalse($second->read('id'));
        $first->write('id', 'data');
        $first->close();
        self::assertSame('data', $second->read('id'));
        self::assertTrue($second->validateId('id'));
        $second->destroy('id');
        self::assertFalse($second->validateId('id'));
    }
}
