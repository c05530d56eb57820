<?php

declare(strict_types=1);

namespace Outboard\Mvc;

/** Input as an object: its constructor's parameters are filled and checked like those of an action. */
interface Input
{
}
