<?php

declare(strict_types=1);

namespace Outboard\Mvc;

/** Renders pages from PHP templates, in which it is `$this`. */
final class View
{
    private ?string $layout = null;

    /** @var array<string, mixed> */
    private array $layoutValues = [];

    public function __construct(public readonly Context $context, private readonly string $directory)
    {
    }

    /** @param array<string, mixed> $values the template's variables */
    public function render(string $name, array $values = []): string
    {
        $content = $this->part($name, $values);
        while (($layout = $this->layout) !== null) {
            $this->layout = null;
            $content = $this->part($layout, ['content' => $content] + $this->layoutValues);
        }
        return $content;
    }

    /**
     * Renders a template within another.
     *
     * @param array<string, mixed> $values
     */
    public function part(string $name, array $values = []): string
    {
        $level = ob_get_level();
        ob_start();
        try {
            $this->run("$this->directory/$name.php", $values);
            return (string) ob_get_clean();
        } finally {
            while (ob_get_level() > $level) {
                ob_end_clean();
            }
        }
    }

    /**
     * Wraps the current template into another one, as its `$content`.
     *
     * @param array<string, mixed> $values
     */
    public function layout(string $name, array $values = []): void
    {
        $this->layout = $name;
        $this->layoutValues = $values;
    }

    /** Escapes text for HTML, including attributes. */
    public function text(mixed $value): string
    {
        return htmlspecialchars((string) $value, ENT_QUOTES | ENT_SUBSTITUTE | ENT_HTML5);
    }

    /**
     * The URL of a named route, for HTML.
     *
     * @param string|int|float|bool ...$values by name
     */
    public function url(string $name, mixed ...$values): string
    {
        return $this->text($this->context->app->url($name, $values));
    }

    /** The URL of a file below the document root, for HTML. */
    public function asset(string $path): string
    {
        return $this->text($this->context->app->asset($path));
    }

    /** The hidden field with the form's token. */
    public function token(): string
    {
        return '<input type="hidden" name="_token" value="' . $this->context->session()->token() . '">';
    }

    /**
     * In addition to its values, the template sees these two variables.
     *
     * @param array<string, mixed> $_values
     */
    private function run(string $_file, array $_values): void
    {
        extract($_values, EXTR_SKIP);
        require $_file;
    }
}
