<?php

declare(strict_types=1);

namespace demo\controller;

use Outboard\Mvc\Controller;
use Outboard\Mvc\Problem;
use Outboard\Response;

/** `/`, `/demo`, `/demo/index` and `/demo/index/index` are the first of these. */
final class index extends Controller
{
    public function actionIndex(): Response
    {
        return $this->page('index/index');
    }

    public function actionHello(string $name = 'world'): string
    {
        return 'Hello, ' . htmlspecialchars($name) . '!';
    }

    /** @return array{code: int, msg: string, data: array{page: int, words: list<string>}} */
    public function actionJson(int $page = 1): array
    {
        return ['code' => 0, 'msg' => 'ok', 'data' => ['page' => $page, 'words' => ['oar', 'rudder', 'thole']]];
    }

    /** An action that responds in JSON has its errors in JSON. */
    public function actionJsonError(): array
    {
        throw new Problem(400, 'This is an error in JSON.', 1001);
    }

    public function actionError(): never
    {
        throw new \RuntimeException('This was thrown by an action.');
    }
}
