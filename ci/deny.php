<?php
// Checks licences and sources of dependencies: `cargo metadata ... | php ci/deny.php deny.toml`.
// Called by ci/deny where cargo-deny is not installed, with the same list of licences.

declare(strict_types=1);

/** Whether an SPDX expression of cargo's can be satisfied by the allowed licences. */
function isAllowed(string $expression, array $allowed): bool
{
    // The older form of crates.io separates alternatives by a slash.
    preg_match_all('~[()]|[^\s()]+~', str_replace('/', ' OR ', $expression), $found);
    $tokens = $found[0];
    $parseOr = function () use (&$tokens, &$parseOr, $allowed): bool {
        $any = false;
        do {
            $all = true;
            do {
                $token = array_shift($tokens);
                if ($token === '(') {
                    $one = $parseOr();
                    array_shift($tokens);
                } else {
                    if (($tokens[0] ?? '') === 'WITH') {
                        $token .= ' WITH ' . $tokens[1];
                        array_splice($tokens, 0, 2);
                    }
                    $one = in_array($token, $allowed, true);
                }
                $all = $all && $one;
            } while (($tokens[0] ?? '') === 'AND' && array_shift($tokens));
            $any = $any || $all;
        } while (($tokens[0] ?? '') === 'OR' && array_shift($tokens));
        return $any;
    };
    return $parseOr() && $tokens === [];
}

$text = file_get_contents($argv[1]);
if (!preg_match('~^\[licenses\].*?^allow = \[(.*?)\]~ms', $text, $list)) {
    fwrite(STDERR, "deny: no licences in {$argv[1]}\n");
    exit(1);
}
preg_match_all('~"([^"]+)"~', $list[1], $names);
$metadata = json_decode(stream_get_contents(STDIN), true, 512, JSON_THROW_ON_ERROR);
$errors = [];
$checked = 0;
foreach ($metadata['packages'] as $package) {
    $name = "{$package['name']} {$package['version']}";
    if ($package['source'] === null) {
        foreach ($package['dependencies'] as $dependency) {
            if ($dependency['req'] === '*' && !isset($dependency['path'])) {
                $errors[] = "$name: any version of {$dependency['name']} would do";
            }
        }
        continue;
    }
    $checked++;
    if ($package['source'] !== 'registry+https://github.com/rust-lang/crates.io-index') {
        $errors[] = "$name: its source is {$package['source']}";
    }
    if (!isAllowed($package['license'] ?? '', $names[1])) {
        $errors[] = "$name: its licence is " . ($package['license'] ?? 'not stated');
    }
}
foreach ($errors as $error) {
    fwrite(STDERR, "deny: $error\n");
}
if ($checked === 0 || $errors !== []) {
    exit(1);
}
echo "deny: licences and sources of $checked packages are allowed\n";
