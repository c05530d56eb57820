<?php

declare(strict_types=1);

namespace app\controller;

use Outboard\Mvc\Controller;
use Outboard\Response;

/** `/`, `/app`, `/app/index` and `/app/index/index` are the first of these. */
final class index extends Controller
{
    public function actionIndex(string $name = 'world'): Response
    {
        return $this->page('index/index', ['name' => $name]);
    }

    /** @return array{sum: int} */
    public function actionSum(int $a, int $b = 1): array
    {
        return ['sum' => $a + $b];
    }
}
