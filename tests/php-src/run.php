<?php
/*
 * Asks for PHP's own tests in every mode and compares what comes with classic mode. Called by
 * ci/php-src-tests, which documents the options.
 *
 * The tests' expectations are those of the command line, so they are not looked at: what a script
 * says in classic mode is what it has to say below a snapshot, and no mode may lose its worker. With
 * isolation by rewind all memory is compared with the snapshot after each test. A
 * script that stays keeps what the tests before have declared, so its answers differ by design and
 * are looked at for crashes alone.
 */

const MODES = ['classic', 'fork', 'rewind', 'worker', 'coroutines'];
/* Those that say what classic mode says. */
const ISOLATED = ['fork', 'rewind'];
const DIFFERS = 'after a rewind the memory differs';
const PLACES = ['Zend/tests', 'tests', 'ext'];
const LONGEST_S = 10;

/* Sections that need another PHP than a server's. */
const NOT_SERVED = ['STDIN', 'ARGS', 'CGI', 'PHPDBG', 'CAPTURE_STDIO', 'REDIRECTTEST', 'POST_RAW',
    'FILE_EXTERNAL', 'FILEEOF', 'PUT', 'GZIP_POST', 'DEFLATE_POST', 'EXPECTHEADERS_CLI', 'XLEAK'];

/* Tests that print properties of the process, and so differ below a snapshot. */
const SHOWN = [
    'Zend/tests/017.phpt' => 'numbers of resources',
    'Zend/tests/arginfo_zpp_mismatch.phpt' => 'functions of worker mode',
    'Zend/tests/arginfo_zpp_mismatch_strict.phpt' => 'functions of worker mode',
    'Zend/tests/get_defined_functions_basic.phpt' => 'functions of worker mode',
    'Zend/tests/globals_001.phpt' => 'entries of $_SERVER',
    'Zend/tests/globals_002.phpt' => 'entries of $_SERVER',
    'Zend/tests/globals_003.phpt' => 'entries of $_SERVER',
    'Zend/tests/globals_004.phpt' => 'entries of $_SERVER',
    'Zend/tests/traits/get_declared_traits_003.phpt' => 'classes of worker mode',
    'ext/filter/tests/bug44779.phpt' => 'entries of $_SERVER',
    'ext/mbstring/tests/php_gr_jp_10830.phpt' => 'options of mb_ereg that another test has set',
    'ext/posix/tests/posix_errno_basic.phpt' => 'the last error of the C library',
    'ext/posix/tests/posix_getpgid_basic.phpt' => 'process ids',
    'ext/posix/tests/posix_getpgrp_basic.phpt' => 'process ids',
    'ext/posix/tests/posix_getpid_basic.phpt' => 'process ids',
    'ext/posix/tests/posix_getppid_basic.phpt' => 'process ids',
    'ext/posix/tests/posix_getsid_basic.phpt' => 'process ids',
    'ext/reflection/tests/ReflectionGenerator_basic.phpt' => 'numbers of anonymous classes',
    'ext/standard/tests/class_object/get_declared_classes_basic_001.phpt' => 'classes of worker mode',
    'ext/standard/tests/class_object/get_declared_interfaces_basic_001.phpt' => 'classes of worker mode',
    'ext/standard/tests/file/bug35740.phpt' => 'the last error of the C library',
    'ext/standard/tests/general_functions/floatval.phpt' => 'numbers of resources',
    'ext/standard/tests/general_functions/get_defined_constants_basic.phpt' => 'constants of worker mode',
    'ext/standard/tests/general_functions/phpinfo.phpt' => 'entries of $_SERVER',
    'ext/standard/tests/serialize/bug81111.phpt' => 'numbers of anonymous classes',
    'ext/standard/tests/strings/strncmp_variation2.phpt' => 'how far memcmp(3) found strings apart',
    'ext/standard/tests/strings/strncmp_variation8.phpt' => 'how far memcmp(3) found strings apart',
    'tests/lang/bug19566.phpt' => 'classes of worker mode',
    'tests/output/ob_start_basic_002.phpt' => 'functions of worker mode',
];

/* What ends PHP itself, on the command line as well: faults of the libraries that Debian has. */
const ENDS_PHP = ['ext/gd/tests/bug65148.phpt'];

function fail(string $why): never
{
    fwrite(STDERR, "php-src: $why\n");
    exit(2);
}

/** @return array<string, string> */
function sections(string $path): array
{
    $sections = [];
    $name = '';
    foreach (file($path) as $line) {
        if (preg_match('/^--([A-Z_]+)--\s*$/', $line, $found)) {
            $name = $found[1];
            $sections[$name] = '';
        } elseif ($name !== '') {
            $sections[$name] .= $line;
        }
    }
    return $sections;
}

/* Whether it may be served here: what harms other processes, or takes for ever, may not. */
function is_served(string $name, array $sections, array $extensions): bool
{
    if (!isset($sections['FILE']) || in_array($name, ENDS_PHP) || array_intersect(NOT_SERVED, array_keys($sections))) {
        return false;
    }
    if (preg_match('~^ext/([a-z0-9_]+)/~', $name, $found) && !in_array($found[1], $extensions)) {
        return false;
    }
    foreach (preg_split('/\s+/', strtolower($sections['EXTENSIONS'] ?? ''), -1, PREG_SPLIT_NO_EMPTY) as $needed) {
        if (!in_array($needed, $extensions)) {
            return false;
        }
    }
    return !preg_match('/SLOW|online|cli.server|ONLINE|win32|WIN/', $sections['SKIPIF'] ?? '')
        && !preg_match('/posix_kill|pcntl_|php_cli_server|proc_open|shell_exec|passthru|system\s*\(|exec\s*\(|mail\s*\(|fsockopen|stream_socket_|socket_create|STDIN|STDOUT|STDERR|getmypid|sleep\s*\(/',
            $sections['FILE']);
}

/** @return array<string, string> */
function settings(array $sections): array
{
    $settings = [];
    foreach (explode("\n", $sections['INI'] ?? '') as $line) {
        if (str_contains($line, '=')) {
            [$name, $value] = array_map('trim', explode('=', $line, 2));
            $settings[$name] = trim($value, '"');
        }
    }
    return $settings;
}

function free_port(): int
{
    $socket = stream_socket_server('tcp://127.0.0.1:0');
    return (int) substr(strrchr(stream_socket_get_name($socket, false), ':'), 1);
}

/* The server with an app for each mode, distinguished by host. */
final class Server
{
    private $process;
    private CurlHandle $curl;
    private int $read = 0;

    public function __construct(private string $folder, private string $tree, public readonly int $port)
    {
        copy(__DIR__ . '/front.php', "$tree/front.php");
        $text = "listen = \"127.0.0.1:$port\"\nreason_header = true\nforwarded_headers = []\n[log.access]\npath = \"off\"\n"
            . "[log.error]\npath = \"$folder/error.log\"\n"
            . "[admin]\nsocket = \"$folder/admin.sock\"\n"
            . "[limits]\nrequest_deadline = \"" . LONGEST_S . "s\"\n"
            . "[pool]\nmin = 1\nmax = 1\nloopback_slots = 0\nmax_requests = 200\n"
            . "[php.ini]\ndisplay_errors = \"1\"\nhtml_errors = \"0\"\nlog_errors = \"0\"\nmemory_limit = \"128M\"\n"
            . "error_reporting = \"32767\"\nprecision = \"14\"\nserialize_precision = \"-1\"\n\"session.save_path\" = \"$folder\"\n"
            . "\"opcache.validate_timestamps\" = \"1\"\n\"opcache.revalidate_freq\" = \"0\"\n\"opcache.file_update_protection\" = \"0\"\n";
        /* The tests write beside themselves. */
        if (fileowner('/proc/self') === 0) {
            $text = "user = \"root\"\n$text";
        }
        foreach (MODES as $mode) {
            $text .= "[app.$mode]\nhosts = \"$mode.test\"\nroot = \"$tree\"\n";
            if ($mode === 'classic') {
                $text .= "front_controller = \"/front.php\"\n";
                continue;
            }
            $text .= "mode = \"worker\"\n[app.$mode.worker]\nscript = \"$tree/front.php\"\n";
            $text .= match ($mode) {
                'fork' => "isolation = \"rewind\"\n[app.fork.php.env]\nOUTBOARD_FORBID_REWIND = \"1\"\n",
                'rewind' => "isolation = \"rewind\"\n[app.rewind.php.env]\nOUTBOARD_VERIFY_REWIND = \"1\"\n",
                'worker' => "[app.worker.php.env]\nOUTBOARD_TEST_STAYS = \"1\"\n",
                'coroutines' => "concurrency = 20\n[app.coroutines.php.env]\nOUTBOARD_TEST_STAYS = \"1\"\n",
            };
        }
        file_put_contents("$folder/outboard.toml", $text);
        $out = ['file', "$folder/out.log", 'a'];
        $this->process = proc_open([getenv('OUTBOARD_BIN'), 'serve', '--config', "$folder/outboard.toml"],
            [['file', '/dev/null', 'r'], $out, $out], $pipes);
        $this->curl = curl_init();
        for ($tried = 0; !@fsockopen('127.0.0.1', $port); $tried++) {
            if ($tried > 300 || !proc_get_status($this->process)['running']) {
                fail("the server did not start:\n" . file_get_contents("$folder/out.log"));
            }
            usleep(100000);
        }
    }

    public function __destruct()
    {
        proc_terminate($this->process);
        proc_close($this->process);
    }

    /* How often memory was not what it was before a request, since the last call. */
    public function damages(): int
    {
        $text = (string) @file_get_contents("$this->folder/error.log", false, null, $this->read);
        $this->read += strlen($text);
        return substr_count($text, DIFFERS);
    }

    /** @return array{status: int, reason: string, body: string} */
    public function ask(string $mode, string $file, array $sections): array
    {
        $query = trim($sections['GET'] ?? '');
        $headers = ["Host: $mode.test", "X-Test: $file", 'X-Ini: ' . json_encode(settings($sections)), 'Expect:'];
        if (isset($sections['COOKIE'])) {
            $headers[] = 'Cookie: ' . trim($sections['COOKIE']);
        }
        $reason = '';
        curl_reset($this->curl);
        curl_setopt_array($this->curl, [
            CURLOPT_URL => "http://127.0.0.1:{$this->port}/front.php" . ($query === '' ? '' : '?' . str_replace(' ', '%20', $query)),
            CURLOPT_RETURNTRANSFER => true,
            CURLOPT_TIMEOUT => LONGEST_S + 15,
            CURLOPT_HTTP_VERSION => CURL_HTTP_VERSION_1_1,
            CURLOPT_HEADERFUNCTION => function ($curl, string $line) use (&$reason): int {
                if (stripos($line, 'X-Outboard-Reason:') === 0) {
                    $reason = trim(substr($line, 18));
                }
                return strlen($line);
            },
        ]);
        if (isset($sections['POST'])) {
            curl_setopt($this->curl, CURLOPT_POSTFIELDS, trim($sections['POST']));
        }
        curl_setopt($this->curl, CURLOPT_HTTPHEADER, $headers);
        $body = curl_exec($this->curl);
        return [
            'status' => curl_getinfo($this->curl, CURLINFO_RESPONSE_CODE),
            'reason' => $reason ?: (curl_errno($this->curl) ? curl_error($this->curl) : ''),
            'body' => is_string($body) ? $body : '',
        ];
    }
}

function is_crash(array $answer): bool
{
    return in_array($answer['reason'], ['worker_crashed', 'worker_protocol_error']) || $answer['status'] === 0;
}

/* Resources are numbered by the process, addresses are the machine's. */
function compared(array $answer): string
{
    $text = preg_replace(
        ['/resource\(\d+\)/', '/Resource id #\d+/', '/0x[0-9a-f]{6,}/', '/(@anonymous.*:\d+\$)[0-9a-f]+/'],
        ['resource(N)', 'Resource id #N', '0xN', '$1N'],
        $answer['body'],
    );
    return "{$answer['status']} $text";
}

final class Run
{
    private array $counts = [];
    private array $crashes = [];
    private array $differences = [];
    private int $unstable = 0;

    public function __construct(private Server $server, private string $tree)
    {
        foreach (MODES as $mode) {
            $this->counts[$mode] = ['asked' => 0, 'crashes' => 0, 'differences' => 0, 'timeouts' => 0];
        }
    }

    private function ask(string $mode, string $name, array $sections): array
    {
        $file = $this->tree . '/' . preg_replace('/\.phpt$/', '.php', $name);
        file_put_contents($file, $sections['FILE']);
        $answer = $this->server->ask($mode, $file, $sections);
        if (isset($sections['CLEAN'])) {
            file_put_contents("$file.clean.php", $sections['CLEAN']);
            $this->server->ask('classic', "$file.clean.php", []);
            @unlink("$file.clean.php");
        }
        return $answer;
    }

    public function one(string $name): void
    {
        $sections = sections("$this->tree/$name");
        $answers = [];
        foreach (MODES as $mode) {
            $answer = $answers[$mode] = $this->ask($mode, $name, $sections);
            $count = &$this->counts[$mode];
            $count['asked']++;
            if (is_crash($answer)) {
                $count['crashes']++;
                $this->crashes[] = ['mode' => $mode, 'test' => $name, 'reason' => $answer['reason']];
            } elseif ($answer['status'] === 504) {
                $count['timeouts']++;
            }
        }
        foreach (ISOLATED as $mode) {
            if (!isset(SHOWN[$name])) {
                $this->compare($mode, $name, $sections, $answers);
            }
        }
        for ($damages = $this->server->damages(); $damages > 0; $damages--) {
            $this->counts['rewind']['crashes']++;
            /* It is reported a moment later, perhaps during the next test. */
            $this->crashes[] = ['mode' => 'rewind', 'test' => $name, 'reason' => DIFFERS];
        }
        @unlink($this->tree . '/' . preg_replace('/\.phpt$/', '.php', $name));
    }

    private function compare(string $mode, string $name, array $sections, array $answers): void
    {
        if (compared($answers[$mode]) === compared($answers['classic'])) {
            return;
        }
        /* What differs from one time to the next says nothing of a mode. */
        $again = $this->ask('classic', $name, $sections);
        $other = $this->ask($mode, $name, $sections);
        if (compared($again) !== compared($answers['classic']) || compared($other) === compared($again)) {
            $this->unstable++;
        } else {
            $this->counts[$mode]['differences']++;
            $this->differences[] = ['mode' => $mode, 'test' => $name, 'classic' => compared($again), 'other' => compared($other)];
        }
    }

    public function report(?string $json): bool
    {
        printf("%-12s %8s %8s %12s %9s\n", 'mode', 'asked', 'crashes', 'differences', 'timeouts');
        foreach ($this->counts as $mode => $count) {
            printf("%-12s %8d %8d %12s %9d\n", $mode, $count['asked'], $count['crashes'],
                in_array($mode, ISOLATED) ? $count['differences'] : '-', $count['timeouts']);
        }
        printf("%d tests say something else each time\n", $this->unstable);
        foreach ($this->crashes as $crash) {
            printf("crash       %-11s %s (%s)\n", $crash['mode'], $crash['test'], $crash['reason']);
        }
        foreach ($this->differences as $difference) {
            printf("difference  %-11s %s\n", $difference['mode'], $difference['test']);
        }
        if ($json !== null) {
            file_put_contents($json, json_encode([
                'modes' => $this->counts, 'unstable' => $this->unstable,
                'crashes' => $this->crashes, 'differences' => $this->differences,
            ], JSON_PRETTY_PRINT | JSON_INVALID_UTF8_SUBSTITUTE | JSON_UNESCAPED_SLASHES) . "\n");
        }
        return !$this->crashes && !$this->differences;
    }
}

/** @return list<string> */
function tests(string $tree, string $only): array
{
    $modules = json_decode(shell_exec('php8.2 -r "echo json_encode(get_loaded_extensions());"'), true);
    $extensions = array_map('strtolower', [...$modules, 'opcache']);
    $found = [];
    foreach (PLACES as $place) {
        foreach (new RecursiveIteratorIterator(new RecursiveDirectoryIterator("$tree/$place", FilesystemIterator::SKIP_DOTS)) as $file) {
            $name = substr($file->getPathname(), strlen($tree) + 1);
            if ($file->getExtension() === 'phpt' && str_starts_with($name, $only)) {
                $found[] = $name;
            }
        }
    }
    sort($found);
    return array_values(array_filter($found, fn ($name) => is_served($name, sections("$tree/$name"), $extensions)));
}

/* So many of them, the same ones each time. */
function sample(array $names, int $count): array
{
    $by_hash = array_combine(array_map('md5', $names), $names);
    ksort($by_hash);
    $some = array_slice(array_values($by_hash), 0, $count);
    sort($some);
    return $some;
}

$arguments = array_slice($argv, 1);
$tree = realpath(array_shift($arguments) ?? '') ?: fail('no folder of PHP\'s sources');
$count = 500;
$only = '';
$json = null;
while ($arguments) {
    $option = array_shift($arguments);
    match ($option) {
        '--all' => $count = PHP_INT_MAX,
        '--sample' => $count = (int) array_shift($arguments),
        '--only' => $only = (string) array_shift($arguments),
        '--json' => $json = (string) array_shift($arguments),
        default => fail("unknown option $option"),
    };
}
$folder = sys_get_temp_dir() . '/php-src-' . getmypid();
mkdir($folder, 0700);
$names = sample(tests($tree, $only), $count);
$began = microtime(true);
$server = new Server($folder, $tree, free_port());
$run = new Run($server, $tree);
foreach ($names as $at => $name) {
    if (stream_isatty(STDERR)) {
        fprintf(STDERR, "\r%d of %d \e[K%s", $at + 1, count($names), $name);
    }
    $run->one($name);
}
fwrite(STDERR, stream_isatty(STDERR) ? "\r\e[K" : '');
printf("%d tests in %d s\n", count($names), microtime(true) - $began);
$is_fine = $run->report($json);
unset($run, $server);
exec('rm -rf ' . escapeshellarg($folder));
exit($is_fine ? 0 : 1);
