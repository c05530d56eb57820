<?php

namespace demo\controller;

use product\async\Parallel;
use product\async\Sleep;
use product\async\Task;

class async extends \web\Controller
{
    /** A coroutine that waits. */
    public function actionIndex()
    {
        $milliseconds = yield (new Sleep(20))->run();
        return $milliseconds >= 19 ? 'waited' : "only $milliseconds ms";
    }

    /** One that calls another. */
    public function actionModel()
    {
        return 'the sum is ' . yield $this->sum([1, 2, 3]);
    }

    public function actionParallel()
    {
        $results = yield (new Parallel([
            'sleep' => new Sleep(20),
            'one' => new Task($this->server, [1]),
            'six' => new Task($this->server, [1, 2, 3]),
        ]))->run();
        $results['sleep'] = round($results['sleep']) >= 19;
        return $this->json($results);
    }

    /** An error of what is awaited is an exception here. */
    public function actionError()
    {
        try {
            yield $this->fails();
        } catch (\RuntimeException $error) {
            return 'caught ' . $error->getMessage();
        }
    }

    /** Without a coroutine. */
    public function actionCallback()
    {
        (new Sleep(5))->fetch(function ($error, $milliseconds) {
            $this->response->end('called back');
        });
    }

    private function sum(array $numbers)
    {
        return yield (new Task($this->server, $numbers))->run();
    }

    private function fails()
    {
        yield (new Sleep(1))->run();
        throw new \RuntimeException('it');
    }
}
