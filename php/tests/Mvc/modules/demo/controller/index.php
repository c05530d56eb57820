<?php

declare(strict_types=1);

namespace demo\controller;

use Outboard\Mvc\Controller;
use Outboard\Mvc\Problem;
use Outboard\Response;

final class index extends Controller
{
    public function actionIndex(): Response
    {
        return $this->page('page', ['who' => '<you>']);
    }

    public function actionFullSpeed(): string
    {
        return 'full speed';
    }

    public function actionJsonError(): array
    {
        throw new Problem(400, 'refused', 1001);
    }

    public function actionBroken(): never
    {
        throw new \DomainException('a secret');
    }

    public function helper(): string
    {
        return 'not an action';
    }
}
