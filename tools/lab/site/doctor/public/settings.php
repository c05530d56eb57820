<?php
// The effective settings of this PHP as a list of names and values.
$opcache = function_exists('opcache_get_status') ? opcache_get_status(false) : false;
// The server's own extension and the name of the SAPI are no relevant difference.
$embedded = ['apache2handler', 'cgi-fcgi', 'outboard', 'readline', 'pcntl', 'cli_server'];
$extensions = array_diff(array_map('strtolower', get_loaded_extensions()), $embedded);
sort($extensions);
$settings = [
    'PHP version' => PHP_VERSION,
    'SAPI' => PHP_SAPI,
    'opcache' => $opcache && $opcache['opcache_enabled'] ? 'on' : 'off',
    'JIT' => ($opcache['jit']['on'] ?? false) ? 'on' : 'off',
    'extensions' => count($extensions) . ' (' . substr(md5(implode(',', $extensions)), 0, 6) . ')',
];
$values = ['opcache.validate_timestamps', 'opcache.memory_consumption', 'memory_limit',
    'output_buffering', 'realpath_cache_size', 'zend.assertions', 'max_execution_time'];
foreach ($values as $name) {
    $settings[$name] = (string) ini_get($name);
}
header('Content-Type: application/json');
echo json_encode(array_map(null, array_keys($settings), array_values($settings)));
