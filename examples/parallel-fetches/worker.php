<?php

/** Four responses of a slow backend on one page: ?one-by-one waits for each, otherwise for the slowest. */

declare(strict_types=1);

use Outboard\Request;
use Outboard\Response;

const TOPICS = ['weather', 'tides', 'ferries', 'news'];

Outboard\serve(static function (Request $request): Response {
    $backend = "{$request->scheme()}://{$request->host()}/slow";
    $tasks = [];
    foreach (TOPICS as $topic) {
        $tasks[$topic] = static fn (): mixed => Outboard\fetch("$backend/$topic", ['timeout' => 5])->json();
    }
    $oneByOne = $request->query('one-by-one') !== null;
    $start = hrtime(true);
    $responses = $oneByOne
        ? array_map(static fn (callable $task): mixed => $task(), $tasks)
        : Outboard\concurrently($tasks);
    $facts = ['took_ms' => intdiv(hrtime(true) - $start, 1_000_000), 'responses' => $responses];

    return str_contains($request->header('Accept') ?? '', 'text/html')
        ? Response::html(page($facts, $oneByOne))
        : Response::json($facts);
});

/** @param array{took_ms: int, responses: array<string, mixed>} $facts */
function page(array $facts, bool $oneByOne): string
{
    $cards = '';
    foreach ($facts['responses'] as $topic => $response) {
        $text = htmlspecialchars((string) json_encode($response, JSON_PRETTY_PRINT | JSON_UNESCAPED_UNICODE));
        $cards .= "<section><h2>$topic</h2><pre>$text</pre></section>";
    }
    [$now, $link, $other] = $oneByOne
        ? ['one after the other', '/', 'all at the same time']
        : ['all at the same time', '/?one-by-one', 'one after the other'];
    return <<<HTML
        <!doctype html>
        <html lang="en">
        <meta charset="utf-8">
        <meta name="viewport" content="width=device-width">
        <title>Parallel fetches</title>
        <style>
          :root { color-scheme: light dark; }
          body { max-width: 46rem; margin: 8vh auto; padding: 0 1rem; font: 1.05rem/1.6 system-ui, "Noto Sans", sans-serif; }
          strong { font-size: 2.6rem; font-variant-numeric: tabular-nums; color: #b3651a; }
          div { display: grid; grid-template-columns: repeat(auto-fit, minmax(18rem, 1fr)); gap: 1rem; }
          section { padding: .2rem 1.2rem; border: 1px solid #8884; border-radius: 10px; }
          pre { white-space: pre-wrap; }
          h2 { margin: .5rem 0 0; font-size: 1.1rem; text-transform: capitalize; }
        </style>
        <h1>Four responses, 300 ms each</h1>
        <p><strong>{$facts['took_ms']} ms</strong> $now · <a href="$link">$other</a></p>
        <div>$cards</div>
        </html>
        HTML;
}
