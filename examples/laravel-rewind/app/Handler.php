<?php

declare(strict_types=1);

namespace App;

final class Handler extends \Illuminate\Foundation\Exceptions\Handler
{
}
