<?php
// The visitors' pages of a WordPress: booted once up to its plugins and theme; each request is a
// fork that continues from there with its own connection.
define('WP_USE_THEMES', true);
require '@ROOT@/wp-load.php';
$wpdb->close();
Outboard\snapshot();
$wpdb->db_connect();
wp_magic_quotes();
$current_user = null;
$wp->init();
wp();
require ABSPATH . WPINC . '/template-loader.php';
