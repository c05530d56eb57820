<?php

declare(strict_types=1);

namespace Guestbook;

/** Templates, and what they need to write HTML. */
final class View
{
    /** A whole page: the template's output within the layout. */
    public static function page(string $template, array $values): string
    {
        $content = self::render($template, $values);
        return self::render('layout', ['content' => $content] + $values);
    }

    private static function render(string $template, array $values): string
    {
        extract($values);
        ob_start();
        require dirname(__DIR__) . "/templates/$template.php";
        return ob_get_clean();
    }

    /** Text for HTML, in attributes as well. */
    public static function text(string|int $text): string
    {
        return htmlspecialchars((string) $text, ENT_QUOTES | ENT_SUBSTITUTE, 'UTF-8');
    }

    /** The URL directory that the guestbook is served from; '' at the top of a host. */
    public static function base(): string
    {
        return rtrim(dirname($_SERVER['SCRIPT_NAME'] ?? '/'), '/');
    }

    public static function url(string $path): string
    {
        return self::base() . $path;
    }

    /** One of eight colours, always the same for a name. */
    public static function hue(string $name): int
    {
        return crc32(strtolower($name)) % 8;
    }

    public static function initial(string $name): string
    {
        return preg_match('/^\X/u', $name, $match) ? $match[0] : '?';
    }

    public static function ago(int $time): string
    {
        $seconds = max(0, time() - $time);
        foreach (['day' => 86400, 'hour' => 3600, 'minute' => 60] as $unit => $length) {
            $count = intdiv($seconds, $length);
            if ($count > 0) {
                return $count > 30 ? gmdate('j F Y', $time) : "$count $unit" . ($count > 1 ? 's' : '') . ' ago';
            }
        }
        return 'just now';
    }
}
