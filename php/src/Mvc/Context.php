<?php

declare(strict_types=1);

namespace Outboard\Mvc;

use Outboard\Container;
use Outboard\Request;

/** The state of one request. */
final class Context
{
    /** @var array<string, string> variables of the route */
    public array $variables = [];

    /** The action, once the route is known. */
    public ?Action $action = null;

    private ?Container $services = null;

    private ?Session $session = null;

    /** @var array<array-key, mixed>|null */
    private ?array $input = null;

    public function __construct(public readonly Application $app, public readonly Request $request)
    {
    }

    /** The services of this request. */
    public function services(): Container
    {
        return $this->services ??= $this->app->services->scope($this, $this->request, $this->session());
    }

    public function session(): Session
    {
        return $this->session ??= new Session();
    }

    public function view(): View
    {
        $module = $this->action === null ? '' : strstr($this->action->class, '\\', true);
        return new View($this, "{$this->app->directory}/$module/view");
    }

    /**
     * The variables of the route, then fields of the body (a form or a JSON object), then the query.
     *
     * @return array<array-key, mixed>
     */
    public function input(): array
    {
        return $this->input ??= $this->variables + $this->body() + $this->request->query();
    }

    /** Whether the client expects errors in JSON. */
    public function wantsJson(): bool
    {
        if ($this->action?->isJson) {
            return true;
        }
        $accept = $this->request->header('Accept') ?? '';
        return str_contains($accept, 'json') && !str_contains($accept, 'text/html');
    }

    /** @return array<array-key, mixed> */
    private function body(): array
    {
        if (!str_contains($this->request->header('Content-Type') ?? '', 'json')) {
            return $this->request->form();
        }
        try {
            $fields = $this->request->json();
        } catch (\JsonException $error) {
            throw new Problem(400, "The body is not JSON: {$error->getMessage()}.");
        }
        return is_array($fields) ? $fields : throw new Problem(400, 'The body is not a JSON object.');
    }
}
