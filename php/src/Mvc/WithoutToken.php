<?php

declare(strict_types=1);

namespace Outboard\Mvc;

/** Of actions that other sites and programs may call: no CSRF token is asked for. */
#[\Attribute(\Attribute::TARGET_CLASS | \Attribute::TARGET_METHOD)]
final class WithoutToken
{
}
