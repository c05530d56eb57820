use super::*;

/// Whether a path below the file's directory is denied (`d`), a script in it not run (`p`), or neither.
fn judge(text: &str, is_in_root: bool, path: &str) -> &'static str {
    let file = Htaccess::read(text.as_bytes(), is_in_root);
    let name = path.rsplit('/').next().unwrap().as_bytes();
    let by_directory = file.of_directory().unwrap_or(false);
    match file.refuses(path.as_bytes()) || file.of_name(name).unwrap_or(by_directory) {
        true => "denied",
        false if file.forbids_script(name) => "no php",
        false => "open",
    }
}

#[track_caller]
fn all(text: &str, expected: &str, paths: &[&str]) {
    for path in paths {
        assert_eq!(judge(text, false, path), expected, "{path} with {text}");
    }
}

#[test]
fn a_denied_directory_is_denied_in_every_notation() {
    for text in [
        "Require all denied",
        "require  ALL\tdenied",
        "deny from all",
        "Order deny,allow\nDeny from all\nAllow from 127.0.0.1",
        "<IfModule !mod_authz_core.c>\nDeny from all\n</IfModule>",
        "<RequireAll>\nRequire all denied\n</RequireAll>",
        "AuthType Basic\nAuthUserFile /x\nRequire valid-user",
        "Require ip 10.0.0.0/8",
        "Require local",
        "Require host example.org",
        "<If \"%{HTTP_HOST} == 'x'\">\nRequire all denied\n</If>",
        "<Limit GET POST>\nRequire valid-user\n</Limit>",
        "<RequireNone>\nRequire all granted\n</RequireNone>",
        "RewriteRule ^ - [F]",
        "RewriteRule \".*\" - [R=404,L]",
        "RewriteCond %{REQUEST_FILENAME} -f\nRewriteRule .* - [F]",
        "RewriteRule (a - [F]",
        "Redirect gone /",
        "<FilesMatch (((>\nRequire all denied\n</FilesMatch>",
        "Require all \\\n denied",
    ] {
        all(text, "denied", &["a.txt", "b/c.php"]);
    }
}

#[test]
fn names_are_denied_and_granted_as_by_httpd() {
    let granted = "Require all denied\n<FilesMatch \"^(form\\.js|a(-b)?\\.css)$\">\n\
                   <IfModule mod_authz_core.c>\nRequire all granted\n</IfModule>\n</FilesMatch>";
    all(granted, "open", &["form.js", "a-b.css", "x/a.css"]);
    all(granted, "denied", &["form.jsx", "index.php"]);
    let denied = "<FilesMatch \"\\.(sql|ya?ml|tpl(\\.php)?)(~|\\.bak)?$|^(\\.(?!well-known).*|Root)$\">\n\
                  Require all denied\n</FilesMatch>";
    all(denied, "denied", &["a.sql", "a.yml~", "d/x.tpl.php.bak", "Root"]);
    all(denied, "open", &["a.php", "Roots", "sql"]);
    all("<Files *.tpl>\nDeny from all\n</Files>", "denied", &["a.tpl", "b/.tpl"]);
    all("<Files wp-config.php>\nDeny from all\n</Files>", "denied", &["wp-config.php"]);
    all("<Files ~ \"\\.ini$\">\nDeny from all\n</Files>", "denied", &["php.ini"]);
    // A grant that is not understood grants nothing.
    let unclear = "Require all denied\n<FilesMatch \"^(?!x\">\nRequire all granted\n</FilesMatch>";
    all(unclear, "denied", &["a.css"]);
}

#[test]
fn rewrite_rules_refuse_paths_below_their_directory() {
    let rule = "RewriteRule ^(vendor|storage)(/|$) - [F,L]";
    all(rule, "denied", &["vendor/a.php", "storage"]);
    all(rule, "open", &["a/vendor/x", "vendors/x"]);
    all("RewriteRule !\\.(css|js)$ - [F]", "denied", &["a.php", "css"]);
    all("RewriteRule !\\.(css|js)$ - [F]", "open", &["a.css"]);
    all("RewriteRule ^old$ /new [R=301]\nRewriteRule . /index.php [L]", "open", &["old", "x"]);
    assert_eq!(judge("RedirectMatch 404 \"^/(\\.git|conf)/\"", true, "conf/x"), "denied");
    assert_eq!(judge("RedirectMatch 404 \"^/(\\.git|conf)/\"", true, "c/conf/x"), "denied");
    assert_eq!(judge("Redirect 410 /old", true, "older"), "open");
}

#[test]
fn directories_without_php_run_no_script() {
    for text in [
        "php_flag engine off",
        "RemoveHandler .php .phtml",
        "SetHandler default-handler",
        "AddType text/plain .php .html",
        "ForceType text/plain",
    ] {
        all(text, "no php", &["x.php"]);
        let in_root = judge(text, true, "x.php");
        assert_eq!(in_root, if text.starts_with("php_flag") { "no php" } else { "open" }, "{text}");
    }
    all("<Files *.php>\ndeny from all\n</Files>", "denied", &["x.php"]);
}

#[test]
fn lists_of_blocked_clients_are_named_and_not_applied() {
    for text in [
        "Order allow,deny\nAllow from all\nDeny from 1.2.3.4",
        "<RequireAll>\nRequire all granted\nRequire not ip 1.2.3.4\n</RequireAll>",
        "RewriteCond %{HTTP_USER_AGENT} bot\nRewriteRule ^ - [F]",
        "<LimitExcept GET POST>\nRequire all denied\n</LimitExcept>",
        "<Limit PUT DELETE>\nDeny from all\n</Limit>",
    ] {
        all(text, "open", &["x.php"]);
        assert_eq!(Htaccess::read(text.as_bytes(), false).not_applied.len(), 1, "{text}");
    }
    all("RewriteEngine on\nOptions -Indexes\nHeader set X y\n# Deny from all", "open", &["x"]);
}

#[test]
fn any_text_is_read_without_a_panic() {
    for text in [
        "<",
        "</",
        "<>",
        "\\",
        "RewriteRule",
        "<Files",
        "<Files ~>",
        "\"",
        "'",
        "</Files>\n</Files>",
    ] {
        judge(text, false, "a");
    }
    let many = format!("RewriteRule {} - [F]", "(a{1,999}){1,999}".repeat(9));
    all(&many, "denied", &["b"]);
    all(&"# x\n".repeat(FILE_MAX_BYTES), "denied", &["b"]);
}
