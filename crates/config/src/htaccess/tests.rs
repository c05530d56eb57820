use super::*;

/// What a file in a directory comes to: `deny`, `no_php_in`, and whether it is to be looked at.
fn read(directory: &str, text: &str) -> (Vec<String>, Vec<String>, bool) {
    let mut all = Htaccess::default();
    Reader { all: &mut all, directory, within: Vec::new(), condition: false }.read(text);
    let list = |set: BTreeSet<String>| set.into_iter().collect::<Vec<_>>();
    (list(all.deny), list(all.no_php_in), !all.look_at.is_empty())
}

#[track_caller]
fn denies(directory: &str, text: &str, deny: &[&str]) {
    let (found, no_php_in, look_at) = read(directory, text);
    assert_eq!(found, deny, "{text}");
    assert!(no_php_in.is_empty() && !look_at, "{no_php_in:?} {look_at} {text}");
}

#[test]
fn a_denied_directory_becomes_a_line() {
    for text in [
        "Require all denied",
        "deny from all",
        "# comment\n<IfModule mod_authz_core.c>\n  Require all denied\n</IfModule>\n\
         <IfModule !mod_authz_core.c>\n  Order deny,allow\n  Deny from all\n</IfModule>\n",
        "RewriteEngine on\nRewriteRule ^ - [F]\n",
    ] {
        let (deny, ..) = read("/data", text);
        assert!(deny == ["/data/"] || deny == ["/data/*"], "{text} {deny:?}");
    }
}

#[test]
fn denied_files_become_patterns() {
    denies("", "<Files \"wp-config.php\">\nRequire all denied\n</Files>", &["wp-config.php"]);
    denies(
        "",
        "<FilesMatch \"\\.(sql|ya?ml)$\">\nOrder allow,deny\nDeny from all\n</FilesMatch>",
        &["*.sql", "*.yaml", "*.yml"],
    );
    denies(
        "/app",
        "<FilesMatch '^(config|local)\\.ini$'>\nDeny from all\n</FilesMatch>",
        &["/app/**/config.ini", "/app/**/local.ini", "/app/config.ini", "/app/local.ini"],
    );
    denies("/app", "<Files *.tpl>\nDeny from all\n</Files>", &["/app/**.tpl"]);
    denies("", "<Files .htpasswd>\nDeny from all\n</Files>", &[]);
}

#[test]
fn rules_with_forbidden_become_patterns() {
    denies("", "RewriteRule ^(vendor|storage)/ - [F,L]", &["/storage/", "/vendor/"]);
    denies("", "RewriteRule ^secret\\.txt$ - [R=404,L]", &["/secret.txt"]);
    denies("/app", "RewriteRule ^config(/|$) - [F]", &["/app/config", "/app/config/"]);
    denies("", "RedirectMatch 404 \\.tpl$", &["*.tpl"]);
    denies("", "RewriteRule ^old$ /new [R=301]\nRewriteRule . /index.php [L]", &[]);
}

#[test]
fn directories_without_php_become_lines() {
    for text in [
        "php_flag engine off",
        "RemoveHandler .php .phtml",
        "<Files *.php>\ndeny from all\n</Files>",
        "<FilesMatch \"\\.(php|phtml|php5)$\">\nRequire all denied\n</FilesMatch>",
        "SetHandler default-handler",
        "AddType text/plain .php .html",
    ] {
        assert_eq!(read("/up", text), (vec![], vec!["/up".to_owned()], false), "{text}");
    }
}

#[test]
fn rules_without_equivalent_are_listed_for_review() {
    for text in [
        "Require ip 10.0.0.0/8",
        "Require valid-user",
        "RewriteCond %{HTTP_HOST} x\nRewriteRule ^ - [F]",
        "RewriteRule ^[a-z]+\\.x$ - [F]",
        "<LimitExcept GET>\nDeny from all\n</LimitExcept>",
        "<FilesMatch \"[^.]x\">\nDeny from all\n</FilesMatch>",
    ] {
        assert_eq!(read("/a", text), (vec![], vec![], true), "{text}");
    }
    for text in ["Require all denied", "RewriteRule ^ - [F]", "RewriteRule .* - [F]"] {
        assert_eq!(read("", text), (vec![], vec![], true), "{text}");
    }
    let (deny, _, look_at) = read("/a", "Deny from all\n<Files a.png>\nAllow from all\n</Files>");
    assert_eq!((deny, look_at), (vec!["/a/".to_owned()], true));
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
        "RewriteRule ( - [F]",
        "RedirectMatch 404 )",
        "<FilesMatch (((>",
        "RewriteRule é( - [F]",
        "</Files>\n</Files>",
    ] {
        read("/a", text);
    }
    let many = format!("RewriteRule {} - [F]", "(a|b)".repeat(40));
    assert!(read("/a", &many).2);
}

#[test]
fn the_search_of_a_root_is_bounded() {
    let root = std::env::temp_dir().join(format!("outboard-htaccess-{}", std::process::id()));
    for directory in ["data", "up/in", "deep/er"] {
        fs::create_dir_all(root.join(directory)).unwrap();
    }
    fs::write(root.join("data/.htaccess"), "Require all denied\n").unwrap();
    fs::write(root.join("up/.htaccess"), "php_flag engine off\n").unwrap();
    fs::write(root.join(".htaccess"), "RewriteEngine on\n").unwrap();
    // A link in a circle is not followed.
    std::os::unix::fs::symlink(&root, root.join("deep/er/round")).unwrap();
    let found = Htaccess::below(&root);
    let none = Htaccess::below(&root.join("deep"));
    fs::remove_dir_all(&root).unwrap();
    let found = found.unwrap();
    assert_eq!((found.files, found.is_whole, none), (3, true, None));
    let lines = ["deny = [\"/data/\"]", "no_php_in = [\"/up\"]"];
    assert_eq!(found.lines_beside(&Deny::default()), lines);
    // The lines, once they are copied, are enough.
    let text = format!("[app.site]\nroot = \"/\"\n{}\n", lines.join("\n"));
    let config = crate::Config::parse(&text, Path::new("/outboard.toml")).unwrap();
    assert!(found.lines_beside(&config.apps[0].deny).is_empty());
}
