//! The guide lists every reason.

use outboard_page_cache::Reason;

#[test]
fn the_guide_explains_every_reason() {
    let guide = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../docs/guide/page-cache.md");
    let guide = std::fs::read_to_string(guide).unwrap();
    for reason in Reason::ALL {
        assert!(guide.contains(&format!("`{}`", reason.code())), "{}", reason.code());
    }
}
