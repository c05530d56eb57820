<?php
/**
 * Plugin Name: Outboard snapshot
 * Description: Has Outboard boot WordPress once for the pages of visitors, and boot it again after a change.
 *
 * A must-use plugin: `outboard init --wordpress` copies it to wp-content/mu-plugins. Without Outboard it does nothing.
 *
 * `Snapshot` calls Outboard\snapshot(): what WordPress does above the call is done once, what is below it once per
 * request, each time from the same memory. `Request` repeats below the call what WordPress itself has read from the
 * request above it. Outboard notes what plugins, the theme and wp-config.php read there, also through WordPress'
 * functions; requests that do not agree with it are handled as without this plugin. `Boot` notes what the boot reads of
 * the database: a snapshot depends on it, or there is none. `Freshness` retires the snapshot when such data changes.
 *
 * In wp-config.php:
 *
 *   define('OUTBOARD_SNAPSHOT', 'init');       // before the `init` of plugins and theme: the default
 *   define('OUTBOARD_SNAPSHOT', 'wp_loaded');  // after it
 *   define('OUTBOARD_SNAPSHOT', false);        // not at all
 *
 * The action `outboard_request` comes once per request, below the snapshot.
 */

namespace Outboard\WordPress;

if (!function_exists('Outboard\snapshot')) {
    return;
}

/** The point up to which WordPress boots once. */
final class Snapshot
{
    /**
     * What WordPress itself does at `init`, without a look at the request, and what takes most of the time until then:
     * in the snapshot, although plugins have their turn at `init` below it.
     */
    private const OWN = [
        'create_initial_post_types', 'create_initial_taxonomies', 'register_core_block_style_handles',
        'register_core_block_types_from_metadata', 'wp_register_core_block_metadata_collection',
        '_register_core_block_patterns_and_categories', '_register_theme_block_patterns',
    ];
    private const OWN_BLOCKS = 'register_block_core_';

    private static ?Snapshot $awaited = null;
    private static ?Boot $boot = null;

    private function __construct(private string $point)
    {
    }

    /** Whether what runs now may be in the snapshot, so that the request is not known yet. */
    public static function is_awaited(): bool
    {
        return self::$awaited !== null;
    }

    public static function listen(): void
    {
        $point = defined('OUTBOARD_SNAPSHOT') ? constant('OUTBOARD_SNAPSHOT') : 'init';
        // The pages of visitors alone: their index.php defines the constant before WordPress is loaded.
        $is_page = defined('WP_USE_THEMES') && constant('WP_USE_THEMES');
        // A network has chosen the site by its path; a page cache in PHP has looked for the page.
        if (!$is_page || !in_array($point, ['init', 'wp_loaded'], true) || is_multisite() || WP_CACHE || wp_installing()) {
            return;
        }
        self::$awaited = new self($point);
        if (\Outboard\is_booting()) {
            self::$boot = new Boot($point === 'wp_loaded');
        }
        add_action($point, self::$awaited->take(...), $point === 'init' ? PHP_INT_MIN : PHP_INT_MAX);
        if ($point === 'wp_loaded') {
            // It would look for due events while booting.
            remove_action('init', 'wp_cron');
        }
    }

    private function take(): void
    {
        if ($this->point === 'init') {
            $this->run_own();
        }
        $before = $_SERVER['REQUEST_TIME_FLOAT'] ?? null;
        [$boot, self::$boot] = [self::$boot, null];
        \Outboard\snapshot(Request::repeated(), refused_because: $boot?->end(), max_age: $boot?->max_age_s() ?? 0);
        self::$awaited = null;
        // Elsewhere the call has no effect, and this is the request from before.
        if (($_SERVER['REQUEST_TIME_FLOAT'] ?? null) !== $before) {
            (new Request())->begin($this->point);
        }
        do_action('outboard_request');
    }

    /** Removes what it runs, so that it does not come a second time. */
    private function run_own(): void
    {
        global $wp_filter;
        $hooked = $wp_filter['init']->callbacks;
        ksort($hooked);
        foreach ($hooked as $priority => $callbacks) {
            foreach (array_column($callbacks, 'function') as $function) {
                $is_own = is_string($function)
                    && (in_array($function, self::OWN, true) || str_starts_with($function, self::OWN_BLOCKS));
                if ($is_own) {
                    $function();
                    remove_action('init', $function, $priority);
                }
            }
        }
    }
}

/** What WordPress has read from the request before the snapshot, done again for the request that came after it. */
final class Request
{
    private const REPEATED = [
        '_SERVER', '_SERVER.REQUEST_URI', '_SERVER.QUERY_STRING', '_SERVER.HTTP_ACCEPT', '_SERVER.CONTENT_TYPE',
        '_SERVER.HTTP_AUTHORIZATION', '_SERVER.PHP_AUTH_USER', '_SERVER.PHP_AUTH_PW', '_SERVER.HTTP_USER_AGENT',
        '_REQUEST', '_COOKIE',
    ];

    /** Whether this request goes on from a snapshot. */
    public static bool $has_begun = false;

    /**
     * For Outboard\snapshot(): what it need not take care of, if WordPress reads it for itself, on its way from
     * wp-settings.php or from this file. Code of a plugin or the theme that calls WordPress for it has read it. What is
     * missing here on purpose: the query and the body, in which the customizer and the editor of files have parameters
     * that take effect before the snapshot; the scheme, which is in the addresses of styles and scripts; the path behind
     * index.php, which is in $pagenow; and the cookie of the recovery mode.
     *
     * @return array<string, list<string>>
     */
    public static function repeated(): array
    {
        $cookies = ['comment_author_', 'comment_author_email_', 'comment_author_url_'];
        $cookies = array_map(static fn (string $name): string => $name . COOKIEHASH, $cookies);
        $cookies = [...$cookies, AUTH_COOKIE, SECURE_AUTH_COOKIE, LOGGED_IN_COOKIE];
        $names = [...self::REPEATED, ...array_map(static fn (string $name): string => "_COOKIE.$name", $cookies)];
        return array_fill_keys($names, [Origin::directory(), ...Origin::own()]);
    }

    /** In the order of wp-settings.php. */
    public function begin(string $point): void
    {
        self::$has_begun = true;
        wp_fix_server_vars();
        wp_maintenance();
        timer_start();
        if (wp_is_json_request()) {
            // As wp_debug_mode().
            ini_set('display_errors', '0');
        }
        $this->forget_cached();
        if (isset($_GET['replytocom'])) {
            // As default-filters.php.
            add_filter('wp_robots', 'wp_robots_no_robots');
        }
        $this->find_browser();
        wp_magic_quotes();
        do_action('sanitize_comment_cookies');
        $GLOBALS['current_user'] = null;
        $GLOBALS['wp']->init();
        if ($point === 'wp_loaded') {
            _show_post_preview();
            if (!defined('DISABLE_WP_CRON') || !constant('DISABLE_WP_CRON')) {
                wp_cron();
            }
        }
    }

    /** Nothing that is read from the database from here on is older than the request. */
    private function forget_cached(): void
    {
        if (wp_using_ext_object_cache()) {
            wp_cache_init();
            wp_start_object_cache();
        } else {
            wp_cache_flush();
        }
    }

    /** As wp-includes/vars.php. */
    private function find_browser(): void
    {
        $agent = $_SERVER['HTTP_USER_AGENT'] ?? '';
        $has = static fn (string $word): bool => stripos($agent, $word) !== false;
        $names = ['lynx', 'edge', 'chrome', 'safari', 'winIE', 'macIE', 'gecko', 'opera', 'NS4'];
        $found = match (true) {
            str_contains($agent, 'Lynx') => 'lynx',
            str_contains($agent, 'Edg') => 'edge',
            $has('chromeframe') => 'winIE',
            $has('chrome') => 'chrome',
            $has('safari') => 'safari',
            (str_contains($agent, 'MSIE') || str_contains($agent, 'Trident')) && str_contains($agent, 'Win') => 'winIE',
            str_contains($agent, 'MSIE') && str_contains($agent, 'Mac') => 'macIE',
            str_contains($agent, 'Gecko') => 'gecko',
            str_contains($agent, 'Opera') => 'opera',
            str_contains($agent, 'Nav') && str_contains($agent, 'Mozilla/4.') => 'NS4',
            default => null,
        };
        foreach ($names as $name) {
            $GLOBALS["is_$name"] = $name === $found;
        }
        $GLOBALS['is_iphone'] = $found === 'safari' && $has('mobile');
        $GLOBALS['is_IE'] = $found === 'macIE' || $found === 'winIE';
    }
}

/** Where a call of WordPress comes from. */
final class Origin
{
    /** Of WordPress' functions. */
    public static function directory(): string
    {
        return realpath(ABSPATH . WPINC) . '/';
    }

    /** @return list<string> the files that call them for WordPress itself */
    public static function own(): array
    {
        return [(string) realpath(ABSPATH . 'wp-settings.php'), __FILE__];
    }

    /** The code of a plugin or the theme that is the nearest caller; null if WordPress itself is. */
    public static function stranger(): ?string
    {
        $is_call = static fn (array $call): bool => isset($call['file']);
        // The first is this file's, which WordPress has called.
        $trace = array_slice(array_values(array_filter(debug_backtrace(DEBUG_BACKTRACE_IGNORE_ARGS), $is_call)), 1);
        foreach ($trace as $at => $call) {
            if (str_starts_with($call['file'], self::directory())) {
                continue;
            }
            if (in_array($call['file'], self::own(), true)) {
                return null;
            }
            $caller = $trace[$at + 1]['function'] ?? '';
            $caller = in_array($caller, ['', 'include', 'include_once', 'require', 'require_once'], true) ? '' : "$caller() ";
            return "$caller({$call['file']}:{$call['line']})";
        }
        return null;
    }

    /** Of a callback, with its place. */
    public static function name($function): string
    {
        try {
            $found = new \ReflectionFunction(\Closure::fromCallable($function));
            return "{$found->getName()}() ({$found->getFileName()}:{$found->getStartLine()})";
        } catch (\Throwable) {
            return 'a callback';
        }
    }
}

/**
 * What a boot reads besides its request. Options are keys of the snapshot, and what expires bounds its age. Of any other
 * query nothing reports when its result changes, so there is no snapshot, unless WordPress itself makes it.
 */
final class Boot
{
    /** WordPress has loaded its options before it loads plugins. */
    private const EARLIER_QUERIES = 1;
    /** Code that may read what WordPress has found of the browser, and of the user. */
    private const BROWSER = '/\bis_(lynx|edge|chrome|safari|iphone|winIE|macIE|IE|gecko|opera|NS4)\b' . self::ANY . '/';
    private const USER = '/\$(current_user|userdata|user_(ID|login|email|identity|level|url))\b' . self::ANY . '/';
    private const ANY = '|\$GLOBALS(?!\s*\[\s*[\'"]\w+[\'"]\s*\])|\bglobal\s+\$[${]';

    private ?string $refusal = null;
    private int $queries;
    /** @var list<int> */
    private array $ends = [];
    /** @var list<array{string, \Closure, int}> */
    private array $filters;

    public function __construct(private bool $runs_init)
    {
        $this->queries = $GLOBALS['wpdb']->num_queries;
        if ($this->queries > self::EARLIER_QUERIES) {
            $this->refuse('the database was queried before this plugin was loaded, by a drop-in or a must-use plugin');
        }
        $this->filters = [
            ['query', $this->query(...), PHP_INT_MAX],
            ['alloptions', static fn ($all) => is_array($all) ? array_filter($all, self::is_lasting(...), ARRAY_FILTER_USE_KEY) : $all, PHP_INT_MAX],
            ['pre_http_request', $this->fetch(...), PHP_INT_MIN],
            ['nonce_life', $this->nonce(...), PHP_INT_MAX],
            ['set_current_user', $this->user(...), PHP_INT_MIN],
            ['init', $this->forget_user(...), PHP_INT_MIN],
        ];
        foreach ($this->filters as [$hook, $callback, $priority]) {
            add_filter($hook, $callback, $priority, 5);
        }
    }

    /** Ends the notice; why there is no snapshot, if there is none. */
    public function end(): ?string
    {
        global $wpdb;
        $this->scan(self::BROWSER, static fn () => $_SERVER['HTTP_USER_AGENT'] ?? null);
        if ($this->runs_init) {
            $cookies = static fn () => [$_COOKIE[LOGGED_IN_COOKIE] ?? null, $_COOKIE[AUTH_COOKIE] ?? null, $_COOKIE[SECURE_AUTH_COOKIE] ?? null];
            $this->scan(self::USER, $cookies);
        }
        if ($wpdb->num_queries !== $this->queries) {
            $this->refuse('the database was queried in a way that WordPress does not notice');
        }
        if (wp_using_ext_object_cache()) {
            $this->refuse('nothing notices what is read of the object cache (object-cache.php)');
        }
        foreach ($this->filters as [$hook, $callback, $priority]) {
            remove_filter($hook, $callback, $priority);
        }
        return $this->refusal;
    }

    /** For how long it is right, as far as is known; 0: no end is known. */
    public function max_age_s(): int
    {
        return $this->ends === [] ? 0 : max(1, min($this->ends) - time());
    }

    private function refuse(string $why): void
    {
        $this->refusal ??= $why;
    }

    private function query($sql)
    {
        $this->queries++;
        $stranger = Origin::stranger();
        $names = Options::read_by((string) $sql);
        if ($names === null && $stranger !== null) {
            $this->refuse("$stranger queries the database before it: " . substr((string) $sql, 0, 120));
        }
        foreach ($names ?? [] as $name) {
            if ($stranger !== null || !Options::is_passing($name)) {
                strlen($name) > 180 ? $this->refuse("the option $name has a long name") : \Outboard\snapshot_depends(Options::key($name));
            }
        }
        return $sql;
    }

    /** Options that change on their own are read one by one, so that it is noticed. */
    private static function is_lasting($name): bool
    {
        return !Options::is_passing((string) $name);
    }

    private function fetch($response)
    {
        $this->refuse((Origin::stranger() ?? 'WordPress') . ' sends a request to another server before it');
        return $response;
    }

    /** It changes twice in this time (wp_nonce_tick). */
    private function nonce($life)
    {
        $half = max(1, (int) $life / 2);
        $this->ends[] = (int) (ceil(time() / $half) * $half);
        return $life;
    }

    /** A callback would have seen the user of the boot, and would see the next one as well. */
    private function user($nothing = null)
    {
        foreach ($GLOBALS['wp_filter']['set_current_user']->callbacks ?? [] as $callbacks) {
            foreach (array_column($callbacks, 'function') as $function) {
                if ($function !== 'kses_init' && !($function instanceof \Closure && $this->is_own($function))) {
                    $this->refuse(Origin::name($function) . ' acts at set_current_user');
                }
            }
        }
        return $nothing;
    }

    private function is_own(\Closure $function): bool
    {
        return (new \ReflectionFunction($function))->getFileName() === __FILE__;
    }

    /** Code that reads the user from here on reads the request again, which is noted. */
    private function forget_user($nothing = null)
    {
        $first = $GLOBALS['wp_filter']['init']->callbacks[PHP_INT_MIN] ?? [];
        $first = array_column($first, 'function')[0] ?? null;
        if (!$first instanceof \Closure || !$this->is_own($first)) {
            $this->refuse(Origin::name($first) . ' is at init before it');
        }
        $GLOBALS['current_user'] = null;
        return $nothing;
    }

    /** Has the value count as read if any code besides WordPress' own may have read it in a variable. */
    private function scan(string $pattern, \Closure $read): void
    {
        $own = [Origin::directory(), ...Origin::own(), realpath(ABSPATH . 'wp-admin') . '/'];
        foreach (get_included_files() as $file) {
            $is_own = array_filter($own, static fn ($beginning) => str_starts_with($file, $beginning)) !== [];
            if (!$is_own && preg_match($pattern, (string) file_get_contents($file)) !== 0) {
                $read();
                return;
            }
        }
    }
}

/** The options in the database. */
final class Options
{
    /** Options that change on their own. */
    private const PASSING = '/^(_transient_|_site_transient_|cron$|doing_cron|rewrite_rules$|recently_|user_count$'
        . '|can_compress_scripts$|https_detection_errors$|finished_|.*\.lock$)/';

    public static function is_passing(string $name): bool
    {
        return preg_match(self::PASSING, $name) === 1;
    }

    /** The options that a snapshot has read one by one and depends on. */
    public static function key(string $name): string
    {
        return "wp-option $name";
    }

    /** @return ?list<string> the options that a query reads; null if it does anything else */
    public static function read_by(string $sql): ?array
    {
        $table = preg_quote($GLOBALS['wpdb']->options, '/');
        if (preg_match("/^SELECT option_value FROM $table WHERE option_name = ('(?:[^'\\\\]|\\\\.)*') LIMIT 1$/", $sql, $found) !== 1
            && preg_match("/^SELECT option_name, option_value FROM $table WHERE option_name IN \(((?:\s*,?\s*'(?:[^'\\\\]|\\\\.)*')+)\)$/", $sql, $found) !== 1) {
            return preg_match("/^SELECT option_name, option_value FROM $table( WHERE autoload (= 'yes'|IN \([^()]*\)))?$/", $sql) === 1 ? [] : null;
        }
        preg_match_all("/'((?:[^'\\\\]|\\\\.)*)'/", $found[1], $names);
        return array_map('stripslashes', $names[1]);
    }
}

/** Changes of what is in the snapshot, whichever script makes them. */
final class Freshness
{
    private bool $is_retired = false;
    /** @var array<string, true> options that a snapshot may depend on one by one */
    private array $changed = [];

    public function listen(): void
    {
        foreach (['added_option', 'updated_option', 'delete_option'] as $event) {
            add_action($event, $this->option(...));
        }
        // Now it is unknown whether it was loaded with all others.
        add_action('deleted_option', fn ($name) => $this->is_retired ? $this->retire() : $this->option($name));
        add_filter('query', $this->query(...));
        $events = [
            'switch_theme', 'activated_plugin', 'deactivated_plugin', 'upgrader_process_complete',
            '_core_updated_successfully', 'customize_save_after', 'save_post_wp_global_styles',
        ];
        foreach ($events as $event) {
            add_action($event, $this->retire(...), PHP_INT_MAX, 0);
        }
        // WordPress stores a change in several steps, and may have booted between two of them.
        add_action('shutdown', $this->retire_again(...), PHP_INT_MAX);
        add_action('outboard_request', function () {
            if (Request::$has_begun) {
                [$this->is_retired, $this->changed] = [false, []];
            }
        });
    }

    private function option(string $name): void
    {
        if (!apply_filters('outboard_snapshot_retire', true, $name)) {
            return;
        }
        $this->changed[$name] = true;
        $is_loaded = !Options::is_passing($name) && array_key_exists($name, wp_load_alloptions());
        $is_loaded ? $this->retire() : $this->retire_key($name);
    }

    /** Changes of options by SQL, at the end of the request. Those by WordPress' functions have their events. */
    private function query($sql)
    {
        $sql = (string) $sql;
        if (stripos($sql, $GLOBALS['wpdb']->options) !== false && preg_match('/^\s*(SELECT|SHOW|DESC)/i', $sql) !== 1) {
            $files = array_column(debug_backtrace(DEBUG_BACKTRACE_IGNORE_ARGS), 'file');
            $this->is_retired = $this->is_retired || !in_array(Origin::directory() . 'option.php', $files, true);
        }
        return $sql;
    }

    private function retire_key(string $name): void
    {
        if (!Snapshot::is_awaited()) {
            \Outboard\snapshot_retire(Options::key($name));
        }
    }

    private function retire(): void
    {
        $this->is_retired = true;
        // A boot has its own changes already, and would never come to an end.
        if (!Snapshot::is_awaited()) {
            \Outboard\snapshot_retire();
        }
    }

    private function retire_again(): void
    {
        if ($this->is_retired) {
            \Outboard\snapshot_retire();
        } else {
            array_map($this->retire_key(...), array_map('strval', array_keys($this->changed)));
        }
    }
}

Snapshot::listen();
if (function_exists('Outboard\snapshot_retire')) {
    (new Freshness())->listen();
}
