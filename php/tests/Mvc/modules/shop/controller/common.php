<?php

declare(strict_types=1);

namespace shop\controller;

abstract class common
{
    public function actionAbout(): array
    {
        return [static::class];
    }
}
