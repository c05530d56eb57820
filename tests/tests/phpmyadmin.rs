//! phpMyAdmin, as Debian ships it, on MariaDB: log-in, a database, a table, rows, import, export.

#![forbid(unsafe_code)]

use outboard_e2e::{
    App, Client, Crawl, Docroot, Form, MariaDb, Multipart, Pair, Request, Scrub, Visit, Visited,
};
use std::path::Path;

/// Debian's vendor configuration names a folder for temporary files and one configuration file for
/// the whole machine; both become the test's own.
fn prepare(database: &MariaDb) -> Docroot {
    let package = Path::new("/usr/share/phpmyadmin");
    let docroot = Docroot::package(package);
    let vendor = std::fs::read_to_string(package.join("libraries/vendor_config.php"))
        .expect("Debian's package has it");
    let temporary = docroot.writable("e2e/tmp");
    let vendor = vendor
        .replace("/var/lib/phpmyadmin/tmp/", &format!("{}/", temporary.display()))
        .replace("'/etc/phpmyadmin/config.inc.php'", "ROOT_PATH . 'e2e/config.inc.php'");
    docroot.put("libraries/vendor_config.php", vendor);
    docroot.put(
        "e2e/config.inc.php",
        format!(
            "<?php\n$cfg['blowfish_secret'] = 'thirty-two characters of secrecy';\n\
             $cfg['Servers'][1] = ['auth_type' => 'cookie', 'host' => 'localhost', 'socket' => '{}', 'connect_type' => 'socket'];\n\
             $cfg['SendErrorReports'] = 'never';\n$cfg['PmaNoRelation_DisableWarning'] = true;\n\
             $cfg['ShowGitRevision'] = false;\n$cfg['ShowServerInfo'] = false;\n",
            database.socket().display()
        ),
    );
    docroot
}

fn app(docroot: &Docroot) -> App {
    docroot.app().deny("/e2e/").deny("/libraries/").deny("/templates/")
}

fn scrub() -> Scrub {
    Scrub::new()
        .replace(r"\b[0-9a-f]{32}(?:[0-9a-f]{32})?\b", "TOKEN")
        .replace(r#"(token"?(?:=|:|" value=|' value=)\\?["']?)[0-9a-zA-Z%{}@|\\/^~`\[\]!$()*+,;:<>?_.#-]+"#, "${1}TOKEN")
        .replace(r#"name="noplugin" value="[0-9a-f]+""#, "name=\"noplugin\" value=\"TOKEN\"")
        // Numbers drawn by chance keep the identifiers of a page apart.
        .replace(r"\d{6,10}", "NUMBER")
        .times()
        .replace(r"\b1[0-9]{9,17}(?:\.[0-9]+)?\b", "TIME")
        .replace(r"(pma[A-Za-z_]+-?1?|phpMyAdmin|goto|back)=[^;]*", "$1=COOKIE")
        .replace(r"took 0\.\d+ seconds", "took TIME seconds")
        .replace(r"[A-Z][a-z]{2} \d\d, \d{4} at \d\d:\d\d [AP]M", "TIME")
        .replace(r"e2e_(reference|subject)", "e2e_DATABASE")
}

#[test]
fn phpmyadmin_works_as_under_php_fpm() {
    let database = MariaDb::start();
    let docroots = [prepare(&database), prepare(&database)];
    goes_through(&database, &Pair::with(&app(&docroots[0]), &app(&docroots[1])).scrubbed(scrub()));
}

#[test]
fn phpmyadmin_rewound_is_the_same() {
    let database = MariaDb::start();
    let docroots = [prepare(&database), prepare(&database)];
    let subject = app(&docroots[1]).rewound_entirely();
    let pair = Pair::with(&app(&docroots[0]), &subject).scrubbed(scrub());
    let (visited, visit) = goes_through(&database, &pair);
    visited.again(&mut [visit], 200);
}

/// Returns the pages of the user, and the user.
fn goes_through<'a>(database: &MariaDb, pair: &'a Pair) -> (Visited, Visit<'a>) {
    let mut visit = pair.visit();
    a_stranger_is_asked_to_log_in(&mut visit);
    the_user_logs_in(&mut visit);
    a_database_a_table_and_rows_are_made(&mut visit);
    the_table_is_exported(&mut visit);
    a_dump_is_imported(&mut visit);
    let visited = every_page_is_the_same(&mut visit);
    let rows = "SELECT COUNT(*) FROM e2e_subject.things";
    assert_eq!(
        database.run(rows).trim(),
        database.run(&rows.replace("subject", "reference")).trim()
    );
    assert_eq!(database.run(rows).trim(), "4");
    (visited, visit)
}

fn a_stranger_is_asked_to_log_in(visit: &mut Visit<'_>) {
    visit.same(&Request::get("/")).expect(200).holding("login_form");
    visit
        .same(&Request::get("/index.php?route=/server/databases"))
        .expect(200)
        .holding("login_form");
    for client in [&mut visit.reference, &mut visit.subject] {
        client.send(&Request::get("/libraries/constants.php")).expect(404);
    }
}

fn the_user_logs_in(visit: &mut Visit<'_>) {
    let fill = |form: Form, password: &str| {
        form.set("pma_username", MariaDb::USER).set("pma_password", password).set("server", "1")
    };
    let refused = visit.same_form("/index.php?route=/", "login_form", |form| fill(form, "wrong"));
    refused.expect(200).holding("Access denied");
    let taken = |form| fill(form, MariaDb::PASSWORD);
    visit.same_form("/index.php?route=/", "login_form", taken).expect(302);
    visit.same(&Request::get("/index.php?route=/")).expect(200).holding("General settings");
}

/// The token that every form of a session carries.
fn token(client: &mut Client) -> String {
    let page = client.get("/index.php?route=/").text();
    let (_, rest) = page.split_once("name=\"token\" value=\"").expect("a page has forms");
    rest.split('"').next().expect("it ends").replace("&amp;", "&").replace("&#039;", "'")
}

/// Sends each its own fields and token; `DB` in a value stands for the name of its database.
#[track_caller]
fn post(visit: &mut Visit<'_>, route: &str, fields: &[(&str, &str)]) -> outboard_e2e::Response {
    let build = |client: &mut Client, database: &str| {
        let token = token(client);
        let owned: Vec<(&str, String)> =
            fields.iter().map(|(name, value)| (*name, value.replace("DB", database))).collect();
        let mut all: Vec<(&str, &str)> =
            owned.iter().map(|(name, value)| (*name, value.as_str())).collect();
        all.push(("token", &token));
        Request::form(&format!("/index.php?route={route}"), &all)
    };
    let reference = build(&mut visit.reference, "e2e_reference");
    let subject = build(&mut visit.subject, "e2e_subject");
    visit.same_each(&reference, &subject)
}

fn a_database_a_table_and_rows_are_made(visit: &mut Visit<'_>) {
    let made = post(
        visit,
        "/server/databases/create",
        &[("new_db", "DB"), ("db_collation", "utf8mb4_general_ci"), ("ajax_request", "true")],
    );
    made.expect(200).holding("\"success\":true");
    let table =
        "CREATE TABLE things (id INT PRIMARY KEY AUTO_INCREMENT, name VARCHAR(50), at DATE)";
    let rows = "INSERT INTO things (name, at) VALUES ('first', '2020-01-01'), ('zw\u{f6}lf', NULL)";
    for query in [table, rows, "SELECT * FROM things ORDER BY id DESC"] {
        let fields =
            [("db", "DB"), ("sql_query", query), ("ajax_request", "true"), ("sql_delimiter", ";")];
        post(visit, "/import", &fields).expect(200).holding("\"success\":true");
    }
}

fn the_table_is_exported(visit: &mut Visit<'_>) {
    let fields = [
        ("db", "DB"),
        ("table", "things"),
        ("export_type", "table"),
        ("export_method", "quick"),
        ("quick_or_custom", "quick"),
        ("what", "csv"),
        ("csv_separator", ","),
        ("csv_enclosed", "\""),
        ("csv_escaped", "\""),
        ("csv_terminated", "AUTO"),
        ("csv_null", "NULL"),
        ("csv_columns", "something"),
        ("csv_structure_or_data", "data"),
        ("single_table", "1"),
        ("output_format", "sendit"),
        ("filename_template", "@TABLE@"),
        ("compression", "none"),
    ];
    let file = post(visit, "/export", &fields).expect(200).holding("zw\u{f6}lf");
    assert!(file.header("content-disposition").is_some_and(|value| value.contains("things.csv")));
}

fn a_dump_is_imported(visit: &mut Visit<'_>) {
    let dump = "INSERT INTO things (name) VALUES ('imported');\nINSERT INTO things (name) VALUES ('too');\n";
    let build = |client: &mut Client, database: &str| {
        let parts = Multipart::new()
            .field("token", &token(client))
            .field("db", database)
            .field("import_type", "database")
            .field("format", "sql")
            .field("sql_compatibility", "NONE")
            .field("charset_of_file", "utf-8")
            .file("import_file", "dump.sql", "application/sql", dump.as_bytes());
        Request::upload("/index.php?route=/import", parts)
    };
    let reference = build(&mut visit.reference, "e2e_reference");
    let subject = build(&mut visit.subject, "e2e_subject");
    visit.same_each(&reference, &subject).expect(200).holding("2 queries executed");
}

fn every_page_is_the_same(visit: &mut Visit<'_>) -> Visited {
    let starts = [
        "/index.php?route=/",
        "/index.php?route=/server/databases",
        "/index.php?route=/server/sql",
        "/index.php?route=/server/privileges",
        "/index.php?route=/server/engines",
        "/index.php?route=/server/collations",
        "/index.php?route=/server/plugins",
        "/index.php?route=/preferences/manage",
        "/index.php?route=/database/structure&db=mysql",
        "/index.php?route=/sql&db=mysql&table=help_topic&pos=0",
        "/index.php?route=/table/structure&db=mysql&table=user",
        "/index.php?route=/import&import_type=server",
        "/index.php?route=/nothing/here",
        "/themes/pmahomme/css/theme.css",
        "/js/dist/functions.js",
        "/js/messages.php",
        "/url.php?url=https%3A%2F%2Fwww.phpmyadmin.net%2F",
        "/favicon.ico",
        "/robots.txt",
    ];
    // What changes something, what shows the machine at this moment, and the two databases' names.
    const LEFT_OUT: &[&str] = &[
        "logout",
        "server/status",
        "server/variables",
        "version-check",
        "git-revision",
        "e2e_",
        "navigation",
        "drop",
        "information_schema",
        "performance_schema",
        "sys&",
        "db=sys",
        "flush",
        "token",
        "binlog",
        "doc/html",
        "sort_by",
        "replication",
    ];
    let follow = |link: &str| LEFT_OUT.iter().all(|part| !link.contains(part));
    let visited = Crawl::from(starts).follow(follow).at_most(80).walk(visit).expect_same(40);
    assert!(visited.statuses[&200] > 30, "{:?}", visited.statuses);
    visited
}
