<?php

declare(strict_types=1);

namespace Outboard\Mvc;

/** What is sent, as an object: its constructor's parameters are filled and checked as an action's. */
interface Input
{
}
