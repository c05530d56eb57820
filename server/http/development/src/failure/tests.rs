//! Messages of PHP in each of their forms.

use super::*;

const UNCAUGHT: &str = "PHP Fatal error:  Uncaught RuntimeException: no <b>boat</b> in sight in \
/srv/app/src/Harbour.php:12\nStack trace:\n#0 /srv/app/public/index.php(7): Harbour->look('<x>')\n\
#1 [internal function]: main()\n#2 {main}\n  thrown in /srv/app/src/Harbour.php on line 12";

#[test]
fn an_uncaught_exception_has_a_message_a_place_and_calls() {
    let failure = parse(UNCAUGHT);
    assert_eq!(failure.kind, "Fatal error");
    assert_eq!(failure.message, "Uncaught RuntimeException: no <b>boat</b> in sight");
    assert_eq!(failure.place, Some(Place { file: "/srv/app/src/Harbour.php", line: 12 }));
    assert_eq!(failure.frames.len(), 3);
    let place = Place { file: "/srv/app/public/index.php", line: 7 };
    assert_eq!(failure.frames[0].place, Some(place));
    assert_eq!(failure.frames[1].place, None);
}

#[test]
fn an_error_without_a_trace_is_read_from_its_line() {
    let message = "PHP of app site did not start: a worker exited with code 4 while starting: PHP \
                 Parse error:  Unclosed '(' on line 2 in /srv/app/worker.php on line 3\nthe worker script \
                 ended without a call for a request";
    let failure = parse(message);
    assert_eq!((failure.kind, failure.message), ("Parse error", "Unclosed '(' on line 2"));
    assert_eq!(failure.place, Some(Place { file: "/srv/app/worker.php", line: 3 }));
}

#[test]
fn another_message_is_shown_unchanged() {
    let failure = parse("the PHP host /usr/bin/none is missing");
    assert_eq!(failure.message, "the PHP host /usr/bin/none is missing");
    assert_eq!((failure.place, failure.frames.len()), (None, 0));
}

#[test]
fn text_of_php_is_not_markup() {
    let page = html(UNCAUGHT, "GET /<script>alert(1)</script>");
    assert!(!page.contains("<b>") && !page.contains("<x>") && !page.contains("<script>"), "{page}");
    assert!(page.contains("no &lt;b&gt;boat&lt;/b&gt; in sight"), "{page}");
}

#[test]
fn the_source_around_the_place_is_shown_and_escaped() {
    let path = std::env::temp_dir().join(format!("outboard-failure-{}.php", std::process::id()));
    let lines: Vec<String> = (1..=40).map(|line| format!("<line {line}>")).collect();
    std::fs::write(&path, lines.join("\n")).unwrap();
    let message = format!("PHP Fatal error:  gone in {} on line 20", path.display());
    let (page, text) = (html(&message, "GET /"), plain(&message));
    std::fs::remove_file(&path).unwrap();
    assert!(page.contains("<span class=here><i>20</i>&lt;line 20&gt;\n</span>"), "{page}");
    assert!(page.contains("&lt;line 14&gt;") && page.contains("&lt;line 26&gt;"), "{page}");
    assert!(!page.contains("line 13&") && !page.contains("line 27&"), "{page}");
    assert!(text.contains(">    20 | <line 20>"), "{text}");
}

#[test]
fn a_file_that_is_not_a_source_is_not_opened() {
    for file in ["/etc/passwd", "/proc/self/environ", "/dev/zero.php", "/nowhere/a.php"] {
        assert_eq!(excerpt(Place { file, line: 1 }), []);
    }
}
