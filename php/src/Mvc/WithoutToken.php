<?php

declare(strict_types=1);

namespace Outboard\Mvc;

/** For actions that other sites and programs may call: no CSRF token is required. */
#[\Attribute(\Attribute::TARGET_CLASS | \Attribute::TARGET_METHOD)]
final class WithoutToken
{
}
