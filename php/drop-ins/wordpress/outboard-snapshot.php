<?php
/**
 * Plugin Name: Outboard snapshot
 * Description: Has Outboard boot WordPress once for the pages of visitors, and boot it again after a change.
 *
 * A must-use plugin: `outboard init --wordpress` copies it to wp-content/mu-plugins. Without Outboard it does nothing.
 *
 * `Snapshot` calls Outboard\snapshot(): what WordPress does above the call is done once, what is below it once per
 * request, each time from the same memory. `Request` repeats below the call what WordPress itself has read from the
 * request above it. Outboard notes what plugins, the theme and wp-config.php read there; requests that do not agree with
 * it are handled as without this plugin. `Freshness` retires the snapshot when data changes that is part of it.
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
        \Outboard\snapshot(Request::repeated());
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
    /** Each by the file of WordPress that reads it, or by any of its files. */
    private const REPEATED = [
        '_SERVER' => '', '_SERVER.REQUEST_URI' => '', '_SERVER.PHP_SELF' => '', '_SERVER.PATH_INFO' => '',
        '_SERVER.QUERY_STRING' => '', '_SERVER.HTTP_ACCEPT' => '', '_SERVER.CONTENT_TYPE' => '',
        '_SERVER.HTTP_AUTHORIZATION' => '', '_SERVER.PHP_AUTH_USER' => '', '_SERVER.PHP_AUTH_PW' => '',
        '_SERVER.HTTP_USER_AGENT' => 'vars.php', '_REQUEST' => '', '_COOKIE' => 'load.php',
    ];

    /** Whether this request goes on from a snapshot. */
    public static bool $has_begun = false;

    /**
     * For Outboard\snapshot(): what it need not take care of. What is missing here on purpose: the query and the body,
     * in which the customizer and the editor of files have parameters that take effect before the snapshot; the scheme,
     * which is in the addresses of styles and scripts; and the cookie of the recovery mode.
     *
     * @return array<string, string>
     */
    public static function repeated(): array
    {
        $directory = ABSPATH . WPINC . '/';
        $repeated = array_map(static fn (string $file): string => $directory . $file, self::REPEATED);
        $cookies = ['comment_author_', 'comment_author_email_', 'comment_author_url_'];
        $cookies = array_map(static fn (string $name): string => $name . COOKIEHASH, $cookies);
        foreach ([...$cookies, AUTH_COOKIE, SECURE_AUTH_COOKIE, LOGGED_IN_COOKIE] as $name) {
            $repeated["_COOKIE.$name"] = $directory;
        }
        return $repeated;
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

/** Changes of what is in the snapshot, whichever script makes them. */
final class Freshness
{
    /** Options that change by themselves, and that no boot keeps. */
    private const PASSING_OPTIONS = '/^(_transient_|_site_transient_|cron$|doing_cron|rewrite_rules$|recently_|user_count$'
        . '|can_compress_scripts$|https_detection_errors$|finished_|.*\.lock$)/';

    private bool $is_retired = false;

    public function listen(): void
    {
        add_action('added_option', $this->option(...));
        add_action('updated_option', $this->option(...));
        // Afterwards nothing says whether it was loaded with all others.
        add_action('delete_option', $this->option(...));
        add_action('deleted_option', fn ($name) => $this->is_retired && $this->option($name));
        $events = [
            'switch_theme', 'activated_plugin', 'deactivated_plugin', 'upgrader_process_complete',
            '_core_updated_successfully', 'customize_save_after', 'save_post_wp_global_styles',
        ];
        foreach ($events as $event) {
            add_action($event, $this->retire(...), PHP_INT_MAX, 0);
        }
        // WordPress stores a change in several steps, and may have booted between two of them.
        add_action('shutdown', fn () => $this->is_retired && \Outboard\snapshot_retire(), PHP_INT_MAX);
        add_action('outboard_request', fn () => $this->is_retired = $this->is_retired && !Request::$has_begun);
    }

    private function option(string $name): void
    {
        if (preg_match(self::PASSING_OPTIONS, $name) === 1) {
            return;
        }
        $is_loaded = array_key_exists($name, wp_load_alloptions());
        if (apply_filters('outboard_snapshot_retire', $is_loaded, $name)) {
            $this->retire();
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
}

Snapshot::listen();
if (function_exists('Outboard\snapshot_retire')) {
    (new Freshness())->listen();
}
