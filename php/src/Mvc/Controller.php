<?php

declare(strict_types=1);

namespace Outboard\Mvc;

use Outboard\Request;
use Outboard\Response;

/** Helpers for actions. Other classes can be controllers as well. */
abstract class Controller
{
    /** @internal set before the action is called */
    public Context $context;

    protected function request(): Request
    {
        return $this->context->request;
    }

    protected function session(): Session
    {
        return $this->context->session();
    }

    /**
     * A page rendered from `view/NAME.php` of the action's module.
     *
     * @param array<string, mixed> $values its variables
     */
    protected function page(string $name, array $values = [], int $status = 200): Response
    {
        return Response::html($this->context->view()->render($name, $values), $status);
    }

    protected function json(mixed $value, int $status = 200): Response
    {
        return Response::json($value, $status);
    }

    protected function redirect(string $location): Response
    {
        return Response::redirect($location, 303);
    }

    /** @param string|int|float|bool ...$values by name */
    protected function url(string $name, mixed ...$values): string
    {
        return $this->context->app->url($name, $values);
    }
}
