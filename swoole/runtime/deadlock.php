<?php

namespace Outboard\Engine\Swoole;

/** Until nothing is left to be waited for; what can never go on is reported. */
function run(): void
{
    if (run_all() > 0) {
        report_deadlock();
    }
}

function report_deadlock(): void
{
    static $reported = [];
    $ids = array_diff(ids(), $reported);
    $reported = array_merge($reported, $ids);
    if ($ids === []) {
        return;
    }
    $text = '[FATAL ERROR]: all coroutines (count: ' . count($ids) . ") are asleep - deadlock!\n";
    foreach (array_slice($ids, 0, 32) as $id) {
        $text .= "\n [Coroutine-$id]\n";
        $text .= shown(trace($id, DEBUG_BACKTRACE_IGNORE_ARGS, 0) ?: []);
    }
    fwrite(STDERR, $text);
}

/** A backtrace as text, a line for each frame. */
function shown(array $trace): string
{
    $text = '';
    foreach ($trace as $number => $frame) {
        $call = ($frame['class'] ?? '') . ($frame['type'] ?? '') . $frame['function'];
        $place = isset($frame['file']) ? "$frame[file]:$frame[line]" : 'internal function';
        $text .= "#$number  $call() called at [$place]\n";
    }
    return $text;
}

/** After the script's last line. */
function end(): void
{
    if (!is_worker()) {
        run();
    }
}

namespace Swoole\Coroutine;

function deadlock_check(): void
{
    \Outboard\Engine\Swoole\report_deadlock();
}
