<?php

declare(strict_types=1);

namespace Outboard\Mvc;

use Outboard\Response;

/**
 * Responds to exceptions of actions: with JSON `{code, msg}`, or with a page. Clients see the message of a
 * Problem; of other exceptions they see the trace in development, and nothing in production, where they are
 * logged.
 */
final class Errors
{
    private const EXCERPT_LINES = 5;

    public function __construct(private readonly bool $development)
    {
    }

    public function respond(\Throwable $thrown, Context $context): Response
    {
        $problem = $thrown instanceof Problem ? $thrown : new Problem(500, 'Something went wrong here.');
        if ($problem !== $thrown) {
            \Outboard\log("uncaught $thrown", LOG_ERR);
        }
        $message = $this->development ? $thrown->getMessage() : $problem->getMessage();
        if ($context->wantsJson()) {
            $fields = $problem->fields === [] ? [] : ['fields' => $problem->fields];
            $trace = $this->development && $problem !== $thrown ? ['trace' => explode("\n", (string) $thrown)] : [];
            $result = ['code' => $problem->getCode(), 'msg' => $message] + $fields + $trace;
            return Response::json($result, $problem->status, $problem->headers);
        }
        $values = ['problem' => $problem, 'message' => $message, 'id' => $context->request->id()];
        $values += ['thrown' => $thrown, 'frames' => $this->development ? self::frames($thrown) : []];
        $page = (new View($context, __DIR__ . '/templates'))->render('error', $values);
        return Response::html($page, $problem->status, $problem->headers);
    }

    /** @return list<array{in: string, file: string, line: int, lines: array<int, string>}> innermost first */
    private static function frames(\Throwable $thrown): array
    {
        $frames = [];
        /** @var list<array{function: string, class?: string, type?: string, file?: string, line?: int}> $trace */
        $trace = $thrown->getTrace();
        foreach ([['file' => $thrown->getFile(), 'line' => $thrown->getLine()], ...$trace] as $at => $place) {
            if (isset($place['file'], $place['line'])) {
                $call = $trace[$at] ?? ['function' => 'the script'];
                $in = ($call['class'] ?? '') . ($call['type'] ?? '') . $call['function'];
                $lines = self::excerpt($place['file'], $place['line']);
                $frames[] = ['in' => $in, 'file' => $place['file'], 'line' => $place['line'], 'lines' => $lines];
            }
        }
        return $frames;
    }

    /** @return array<int, string> by number */
    private static function excerpt(string $file, int $line): array
    {
        $source = is_file($file) ? file($file, FILE_IGNORE_NEW_LINES) : false;
        $from = max(0, $line - 1 - self::EXCERPT_LINES);
        $lines = array_slice($source ?: [], $from, 2 * self::EXCERPT_LINES + 1);
        return $lines === [] ? [] : array_combine(range($from + 1, $from + count($lines)), $lines);
    }
}
