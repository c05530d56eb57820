<?php
/**
 * Plugin Name: Outboard page cache
 * Description: Tags pages with their content, and purges those that a change affects from Outboard's page cache.
 *
 * A must-use plugin: copy it to wp-content/mu-plugins. Without Outboard it does nothing.
 *
 * While a page is rendered, the content that WordPress loads is recorded as tags (`Tags`) and sent as
 * Cache-Tag. After a change, its tags are purged at once (`Changes`), and again at the end of the request:
 * WordPress stores data in several steps, and a page rendered between two of them would be incomplete.
 *
 * | tag | on pages that | purged when |
 * |---|---|---|
 * | `site` | exist | theme, menu, widget, template, user or option change |
 * | `post-7` | show this post | it, its fields or its comments change |
 * | `posts-page` | list posts of this type, or look up neighbours | any of that type changes |
 * | `comments` | list comments of several posts | any comment changes |
 * | `terms-category` | show or list terms of this taxonomy | any changes, or a post that has such |
 * | `fields-user` | read fields of a user (or of a term, a comment) | one of any user (term, comment) changes |
 */

namespace Outboard\WordPress;

if (!function_exists('Outboard\cache_purge')) {
    return;
}

/** The tags of the page that is being rendered. */
final class Tags
{
    /** A page with more tags than fit into the header gets one tag for everything. */
    private const MOST = 400;
    private const EVERYTHING = ['site' => true, 'everything' => true];

    /** @var array<string, true> */
    private array $noted = ['site' => true];
    private bool $sent = false;

    public function listen(): void
    {
        add_filter('the_posts', $this->posts(...), PHP_INT_MAX);
        add_action('pre_get_posts', $this->query(...), PHP_INT_MAX);
        add_action('pre_get_comments', $this->comments(...), PHP_INT_MAX);
        add_action('pre_get_terms', $this->terms(...), PHP_INT_MAX);
        add_action('the_post', fn ($post) => $this->note("post-{$post->ID}"));
        foreach (['get_previous_post_where', 'get_next_post_where'] as $neighbour) {
            add_filter($neighbour, $this->neighbour(...), PHP_INT_MAX, 5);
        }
        add_filter('getarchives_where', $this->archives(...), PHP_INT_MAX, 2);
        add_action('pre_get_users', fn () => $this->note('fields-user'));
        foreach (['user', 'term', 'comment'] as $kind) {
            add_filter("get_{$kind}_metadata", function ($value) use ($kind) {
                $this->note("fields-$kind");
                return $value;
            });
        }
        // The outermost buffer, which WordPress ends last (wp_ob_end_flush_all).
        ob_start($this->send(...));
    }

    private function note(string $tag): void
    {
        $this->noted[$tag] = true;
    }

    private function posts(?array $posts): ?array
    {
        foreach ($posts ?? [] as $post) {
            $this->note('post-' . (is_object($post) ? $post->ID : $post));
        }
        return $posts;
    }

    private function query(\WP_Query $query): void
    {
        // A single post, requested by name or number, is in `the_posts`; the query cannot return others.
        if ($query->is_main_query() && $query->is_singular() && !$query->is_posts_page) {
            return;
        }
        // WP_Query's default type (WP_Query::get_posts).
        $default = $query->is_search() || $query->is_archive() ? 'any' : 'post';
        foreach ((array) ($query->get('post_type') ?: $default) as $type) {
            $this->note("posts-$type");
        }
        if ($query->is_comment_feed()) {
            $this->note('comments');
        }
    }

    private function comments(\WP_Comment_Query $query): void
    {
        $post = (int) ($query->query_vars['post_id'] ?? 0);
        $this->note($post > 0 ? "post-$post" : 'comments');
    }

    private function terms(\WP_Term_Query $query): void
    {
        foreach ((array) ($query->query_vars['taxonomy'] ?: 'any') as $taxonomy) {
            $this->note("terms-$taxonomy");
        }
    }

    private function neighbour(string $where, $same, $excluded, $taxonomy, ?\WP_Post $post): string
    {
        $this->note('posts-' . ($post?->post_type ?? 'post'));
        return $where;
    }

    private function archives(string $where, array $arguments): string
    {
        $this->note('posts-' . ($arguments['post_type'] ?? 'post'));
        return $where;
    }

    private function send(string $output, int $phase): string
    {
        if ($this->sent || headers_sent()) {
            return $output;
        }
        $this->sent = true;
        $is_whole = ($phase & PHP_OUTPUT_HANDLER_FINAL) !== 0;
        $tags = $is_whole && count($this->noted) <= self::MOST ? $this->noted : self::EVERYTHING;
        header('Cache-Tag: ' . implode(',', array_map(scoped(...), array_keys($tags))), false);
        return $output;
    }
}

/** The changes of this request. */
final class Changes
{
    /** Types that appear on every page of a site. */
    private const FRAME_TYPES = [
        'nav_menu_item', 'wp_template', 'wp_template_part', 'wp_global_styles', 'wp_navigation', 'wp_block', 'custom_css',
    ];
    /** Types that no visitor sees. */
    private const HIDDEN_TYPES = ['revision', 'customize_changeset', 'oembed_cache', 'user_request'];
    private const HIDDEN_STATES = ['auto-draft', 'draft', 'pending', 'future', 'trash', 'new'];
    private const HIDDEN_FIELDS = ['_edit_lock', '_edit_last', '_pingme', '_encloseme', '_wp_old_slug', '_wp_old_date'];
    /** Fields of users that change automatically and appear on no page. */
    private const HIDDEN_USER_FIELDS = '/^session_tokens$|user-settings|dashboard_quick_press|^community-events-location$'
        . '|^(closedpostboxes|metaboxhidden|meta-box-order)_|^_application_passwords$|^wc_last_active$|persistent_cart/';
    /** Options that change automatically and appear on no page. */
    private const HIDDEN_OPTIONS = '/^(_transient_|_site_transient_|cron$|doing_cron|recently_|rewrite_rules$|'
        . 'can_compress_scripts$|https_detection_errors$|finished_|user_count$|auth_key$|.*_salt$|.*\.lock$)/';

    /** @var array<string, true> purged already, and again at the end */
    private array $purged = [];

    public function listen(): void
    {
        add_action('transition_post_status', $this->moved(...), 10, 3);
        add_action('clean_post_cache', fn ($id, $post) => $this->post($post), 10, 2);
        add_action('before_delete_post', fn ($id, $post) => $this->post($post), 10, 2);
        foreach (['added', 'updated', 'deleted'] as $verb) {
            add_action("{$verb}_post_meta", fn ($ids, $post, $field) => $this->field((int) $post, $field), 10, 3);
            add_action("{$verb}_option", $this->option(...));
            add_action("{$verb}_term_meta", fn ($ids, $term) => $this->term((int) $term), 10, 2);
            add_action("{$verb}_comment_meta", fn ($ids, $comment) => $this->comment((int) $comment), 10, 2);
            add_action("{$verb}_user_meta", fn ($ids, $user, $field) => $this->user($field), 10, 3);
        }
        // Without its taxonomy only the number of posts has been counted, which follows from the posts.
        add_action('clean_term_cache', fn ($ids, $taxonomy, $whole) => $whole
            && $this->purge("terms-$taxonomy", 'terms-any', 'fields-term'), 10, 3);
        add_action('clean_taxonomy_cache', fn ($taxonomy) => $this->purge("terms-$taxonomy", 'terms-any'));
        add_action('deleted_term_relationships', $this->sorted(...));
        add_action('clean_comment_cache', $this->comment(...));
        add_action('deleted_comment', fn ($id, $comment) => $this->purge('comments', "post-{$comment->comment_post_ID}"), 10, 2);
        foreach (['created_term', 'edited_term', 'delete_term'] as $event) {
            add_action($event, fn ($id, $place, $taxonomy) => $this->purge("terms-$taxonomy", 'terms-any'), 10, 3);
        }
        add_action('set_object_terms', $this->sorted(...));
        $whole = [
            'switch_theme', 'customize_save_after', 'wp_update_nav_menu', 'profile_update', 'deleted_user',
            'user_register', 'clean_user_cache', 'add_link', 'edit_link', 'delete_link',
            'activated_plugin', 'deactivated_plugin', 'upgrader_process_complete',
        ];
        foreach ($whole as $event) {
            add_action($event, fn () => $this->purge('site'));
        }
        add_action('shutdown', $this->once_more(...), PHP_INT_MAX);
    }

    private function moved(string $new, string $old, \WP_Post $post): void
    {
        if (!in_array($new, self::HIDDEN_STATES, true) || !in_array($old, self::HIDDEN_STATES, true)) {
            $this->shown($post);
        }
    }

    private function post(\WP_Post $post): void
    {
        if (!in_array($post->post_status, self::HIDDEN_STATES, true)) {
            $this->shown($post);
        }
    }

    private function shown(\WP_Post $post): void
    {
        if (in_array($post->post_type, self::FRAME_TYPES, true)) {
            $this->purge('site');
        } elseif (!in_array($post->post_type, self::HIDDEN_TYPES, true)) {
            // The terms show the number of posts.
            $terms = array_map(fn ($taxonomy) => "terms-$taxonomy", get_object_taxonomies($post->post_type));
            $this->purge("post-{$post->ID}", "posts-{$post->post_type}", 'posts-any', 'terms-any', ...$terms);
        }
    }

    private function sorted(int $id): void
    {
        $post = get_post($id);
        if ($post instanceof \WP_Post) {
            $this->post($post);
        }
    }

    private function field(int $id, string $field): void
    {
        $post = in_array($field, self::HIDDEN_FIELDS, true) ? null : get_post($id);
        if ($post instanceof \WP_Post) {
            $this->post($post);
        }
    }

    private function comment(int $id): void
    {
        $comment = get_comment($id);
        if ($comment !== null) {
            $this->purge('comments', "post-{$comment->comment_post_ID}", 'fields-comment');
        }
    }

    private function term(int $id): void
    {
        $term = get_term($id);
        $this->purge('fields-term', 'terms-any', ...($term instanceof \WP_Term ? ["terms-{$term->taxonomy}"] : []));
    }

    private function user(string $field): void
    {
        if (preg_match(self::HIDDEN_USER_FIELDS, $field) === 0) {
            $this->purge('fields-user');
        }
    }

    private function option(string $name): void
    {
        if (preg_match(self::HIDDEN_OPTIONS, $name) === 0) {
            $this->purge('site');
        }
    }

    private function purge(string ...$tags): void
    {
        $tags = array_map(scoped(...), [...$tags, 'everything']);
        $new = array_diff($tags, array_keys($this->purged));
        $this->purged += array_fill_keys($tags, true);
        if (array_diff($new, [scoped('everything')]) !== []) {
            \Outboard\cache_purge(tags: array_values($new));
        }
    }

    private function once_more(): void
    {
        if ($this->purged !== []) {
            \Outboard\cache_purge(tags: array_keys($this->purged));
        }
    }
}

/** A tag of the current site of an installation with several. */
function scoped(string $tag): string
{
    return is_multisite() ? 'blog-' . get_current_blog_id() . "-$tag" : $tag;
}

(new Changes())->listen();
$begin = static function (): void {
    if (in_array($_SERVER['REQUEST_METHOD'] ?? '', ['GET', 'HEAD'], true) && !is_admin() && !wp_doing_cron()) {
        (new Tags())->listen();
    }
};
// With the other plugin the request is known below its snapshot, which has no open buffer.
add_action('muplugins_loaded', static function () use ($begin): void {
    $is_later = class_exists(Snapshot::class, false) && Snapshot::is_awaited();
    $is_later ? add_action('outboard_request', $begin) : $begin();
}, PHP_INT_MIN);
