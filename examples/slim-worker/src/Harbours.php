<?php

declare(strict_types=1);

/** A few harbours, read once per worker; counts how often they were read since. */
final class Harbours
{
    private const ALL = [
        'genoa' => ['name' => 'Genoa', 'country' => 'Italy', 'lighthouse_m' => 77],
        'hamburg' => ['name' => 'Hamburg', 'country' => 'Germany', 'lighthouse_m' => 42],
        'valparaiso' => ['name' => 'Valparaíso', 'country' => 'Chile', 'lighthouse_m' => 18],
    ];

    private int $reads = 0;

    /** @return array{name: string, country: string, lighthouse_m: int, reads: int}|null */
    public function find(string $name): ?array
    {
        $this->reads++;
        $found = self::ALL[strtolower($name)] ?? null;
        return $found === null ? null : $found + ['reads' => $this->reads];
    }

    public function page(): string
    {
        $items = '';
        foreach (self::ALL as $key => $harbour) {
            $items .= "<li><a href=\"/harbours/$key\">{$harbour['name']}</a>, {$harbour['country']}";
        }
        return <<<HTML
            <!doctype html>
            <html lang="en">
            <meta charset="utf-8">
            <title>Harbours</title>
            <style>body { max-width: 36rem; margin: 10vh auto; font: 1.1rem/1.7 system-ui, sans-serif; color-scheme: light dark; }</style>
            <h1>Harbours, by Slim</h1>
            <ul>$items</ul>
            </html>
            HTML;
    }
}
