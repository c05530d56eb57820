<?php

/**
 * A server for messages with a length in front, as Swoole's documentation has them: each message is JSON
 * with an operation, and so is its response. Nothing in it knows of Outboard.
 */

declare(strict_types=1);

use Swoole\Server;
use Swoole\Table;

$accounts = new Table(1024);
$accounts->column('balance', Table::TYPE_INT);
$accounts->create();

$server = new Server('0.0.0.0', 9502);
$server->set([
    'worker_num' => 2,
    'open_length_check' => true,
    'package_length_type' => 'N',
    'package_length_offset' => 0,
    'package_body_offset' => 4,
    'package_max_length' => 65536,
    'heartbeat_check_interval' => 30,
    'heartbeat_idle_time' => 300,
]);

$server->on('receive', static function (Server $server, int $fd, int $reactor, string $message) use ($accounts): void {
    $request = json_decode(substr($message, 4), true) ?? [];
    $account = (string) ($request['account'] ?? '');
    $response = match ($request['operation'] ?? '') {
        'deposit' => ['balance' => $accounts->incr($account, 'balance', (int) $request['amount'])],
        'balance' => ['balance' => $accounts->get($account, 'balance') ?: 0],
        'broadcast' => ['receivers' => broadcast($server, $fd, (string) $request['text'])],
        default => ['error' => 'operations are deposit, balance and broadcast'],
    };
    $server->send($fd, packed($response));
});

/** A length of four bytes, and JSON. */
function packed(array $message): string
{
    $json = json_encode($message, JSON_THROW_ON_ERROR);
    return pack('N', strlen($json)) . $json;
}

/** Whichever workers the other connections belong to. */
function broadcast(Server $server, int $from, string $text): int
{
    $receivers = 0;
    foreach ($server->connections as $fd) {
        if ($fd !== $from && $server->send($fd, packed(['from' => $from, 'text' => $text]))) {
            $receivers++;
        }
    }
    return $receivers;
}

$server->start();
