<?php
// What the programs are built of, as CycloneDX 1.5 JSON: the crates that outboard and outboard-php link, with versions,
// checksums and licences. Called by packaging/dist.
//
//   cargo metadata --format-version 1 --locked --filter-platform TARGET | php ci/sbom.php Cargo.lock
//
// Build scripts and their crates are in it too; crates of tests are not. The same Cargo.lock results in the same bytes;
// the time is SOURCE_DATE_EPOCH.
declare(strict_types=1);

const PROGRAMS = ['outboard', 'outboard-php'];

$metadata = json_decode(stream_get_contents(STDIN), true, flags: JSON_THROW_ON_ERROR);
$packages = array_column($metadata['packages'], null, 'id');
$nodes = array_column($metadata['resolve']['nodes'], null, 'id');

// "name version" to the SHA-256 of the crate.
preg_match_all('/^name = "(.+)"\nversion = "(.+)"\n(?:source = .+\n)?(?:checksum = "(.+)"\n)?/m', file_get_contents($argv[1]), $locked, PREG_SET_ORDER);
$checksums = [];
foreach ($locked as $entry) {
    $checksums["$entry[1] $entry[2]"] = $entry[3] ?? null;
}

$reference = static fn(array $package): string => "pkg:cargo/$package[name]@$package[version]";
$edges = [];
$visit = static function (string $id) use (&$visit, &$edges, $nodes): void {
    if (isset($edges[$id])) {
        return;
    }
    $edges[$id] = [];
    foreach ($nodes[$id]['deps'] as $dependency) {
        $kinds = array_column($dependency['dep_kinds'], 'kind');
        if (in_array(null, $kinds, true) || in_array('build', $kinds, true)) {
            $edges[$id][] = $dependency['pkg'];
            $visit($dependency['pkg']);
        }
    }
};
$roots = array_filter($packages, static fn(array $package): bool => in_array($package['name'], PROGRAMS, true) && $package['source'] === null);
array_map($visit, array_keys($roots));

$components = $dependencies = [];
foreach ($edges as $id => $targets) {
    $package = $packages[$id];
    $name = "$package[name] $package[version]";
    $component = [
        'type' => isset($roots[$id]) ? 'application' : 'library',
        'bom-ref' => $reference($package),
        'name' => $package['name'],
        'version' => $package['version'],
        'licenses' => [['expression' => preg_replace(['~/~', '~ +~'], [' OR ', ' '], $package['license'] ?? 'NOASSERTION')]],
        'purl' => $reference($package),
    ];
    if (isset($checksums[$name])) {
        $component['hashes'] = [['alg' => 'SHA-256', 'content' => $checksums[$name]]];
    }
    $components[$name] = $component;
    $references = array_unique(array_map(static fn(string $target): string => $reference($packages[$target]), $targets));
    sort($references);
    $dependencies[$name] = ['ref' => $reference($package), 'dependsOn' => $references];
}
ksort($components);
ksort($dependencies);
$root = current($roots);
$bom = [
    'bomFormat' => 'CycloneDX',
    'specVersion' => '1.5',
    'version' => 1,
    'metadata' => [
        'timestamp' => gmdate('Y-m-d\TH:i:s\Z', (int) getenv('SOURCE_DATE_EPOCH')),
        'component' => ['type' => 'application', 'bom-ref' => 'outboard', 'name' => 'outboard', 'version' => $root['version']],
    ],
    'components' => array_values($components),
    'dependencies' => [
        ['ref' => 'outboard', 'dependsOn' => array_values(array_map($reference, $roots))],
        ...array_values($dependencies),
    ],
];
echo json_encode($bom, JSON_PRETTY_PRINT | JSON_UNESCAPED_SLASHES | JSON_THROW_ON_ERROR), "\n";
