<?php

declare(strict_types=1);

namespace demo\controller;

use demo\model\Board;
use Outboard\Mvc\Controller;
use Outboard\Mvc\Rule\Range;
use Outboard\Response;

/** Ways of waiting, each with the time that it took. */
final class async extends Controller
{
    private const NAP_SECONDS = 0.2;

    public function actionIndex(): Response
    {
        return $this->page('async/index');
    }

    /** A query, by a service that the request has of its own. */
    public function actionModel(Board $board): Response
    {
        return $this->timed('One query', static fn () => ['notes' => count($board->all())]);
    }

    public function actionSync(#[Range(1, 10)] int $times = 3): Response
    {
        return $this->timed("$times naps, one after the other", static fn () => array_map(self::nap(...), range(1, $times)));
    }

    public function actionParallel(#[Range(1, 10)] int $times = 3): Response
    {
        $naps = array_map(static fn (int $number) => static fn () => self::nap($number), range(1, $times));
        return $this->timed("$times naps at the same time", static fn () => \Outboard\concurrently($naps));
    }

    /** A task worker does it, in another process; see worker.php. */
    public function actionTask(#[Range(0, 30)] int $number = 20): Response
    {
        return $this->timed('A task, done elsewhere', static fn () => \Outboard\task('fibonacci', $number));
    }

    /** The gateway makes the requests: to this very server, so that the example needs no other. */
    public function actionHttp(): Response
    {
        $url = 'http://' . $this->request()->host() . '/demo/index/json?page=';
        $pages = array_map(static fn (int $page) => static fn () => \Outboard\fetch($url . $page)->json(), [1, 2]);
        return $this->timed('Two pages fetched at the same time', static fn () => \Outboard\concurrently($pages));
    }

    private static function nap(int $number): string
    {
        \Outboard\sleep(self::NAP_SECONDS);
        return "nap $number";
    }

    private function timed(string $title, \Closure $work): Response
    {
        $begun = hrtime(true);
        $result = $work();
        $milliseconds = (int) round((hrtime(true) - $begun) / 1e6);
        return $this->page('async/result', ['title' => $title, 'result' => $result, 'milliseconds' => $milliseconds]);
    }
}
