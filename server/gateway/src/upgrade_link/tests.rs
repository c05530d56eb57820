//! Two servers of an upgrade: a gateway, and the other end of its link.

use super::*;
use crate::testing::{Site, Upstream, in_loop, ok, wait_for};

/// A site whose pages are cached, and its upstream.
fn cached() -> (Site, Upstream) {
    let upstream = Upstream::start(|_| ok("Cache-Control: max-age=60\r\n", "page"));
    let keys = format!(
        "[[app.site.proxy]]\npath = \"/**\"\nupstream = \"http://127.0.0.1:{}\"\n\
         [app.site.page_cache]\nmode = \"on\"\n",
        upstream.port
    );
    (Site::new(&[], &keys), upstream)
}

/// A link of a gateway, and the other server's end.
fn linked(gateway: &Rc<Gateway>) -> (Rc<UpgradeLink>, Rc<Link>) {
    let (end, other) = Link::pair().unwrap();
    let link = UpgradeLink::open(end, LinkFacts::default()).unwrap();
    link.join(gateway);
    (link, Link::new(other).unwrap())
}

fn purge(app: &str, selector: &Selector) -> Vec<u8> {
    framed(kind::PURGE, &[&named(app), &[0], &selector.encoded()])
}

/// The number of pages in memory.
fn pages(site: &Site) -> usize {
    site.app().page_cache.as_ref().unwrap().memory().iter().count()
}

#[test]
fn names_of_apps_precede_what_they_are_for() {
    let content = [&named("shop")[..], b"rest"].concat();
    assert_eq!(of_app(&content), Some((&b"shop"[..], &b"rest"[..])));
    assert_eq!(of_app(&named("")), Some((&b""[..], &b""[..])));
    for cut in [&b""[..], b"\x04sho"] {
        assert_eq!(of_app(cut), None);
    }
    assert_eq!(named(&"n".repeat(300)).len(), 256, "the length is one byte");
    assert_eq!(framed(kind::TASK, &[b"a", b"", b"bc"]), b"\x02abc");
}

#[test]
fn a_purge_of_the_other_server_removes_pages_and_goes_to_all_others() {
    in_loop(async {
        let (site, _upstream) = cached();
        let (_first, other) = linked(&site.gateway);
        let (_second, third) = linked(&site.gateway);
        site.get("/a").await;
        site.get("/b").await;
        assert_eq!(pages(&site), 2);
        let frame = purge("site", &Selector::url(b"/a"));
        other.send(frame.clone());
        assert_eq!(third.receive().await, Some(frame));
        assert_eq!(pages(&site), 1);
        // It does not come back to where it is from.
        third.send(purge("site", &Selector::All));
        assert_eq!(other.receive().await, Some(purge("site", &Selector::All)));
        assert_eq!(pages(&site), 0);
    });
}

#[test]
fn frames_without_meaning_have_no_effect() {
    in_loop(async {
        let (site, upstream) = cached();
        let (_link, other) = linked(&site.gateway);
        site.get("/a").await;
        site.get("/b").await;
        let purged_elsewhere = purge("another", &Selector::All);
        for frame in
            [vec![], vec![99, 1], vec![kind::PURGE], vec![kind::PURGE, 4, b's'], purged_elsewhere]
        {
            other.send(frame);
        }
        other.send(framed(kind::CALL, &[b"no call"]));
        // Frames arrive in order.
        other.send(purge("site", &Selector::url(b"/b")));
        wait_for("the last frame", || (pages(&site) == 1).then_some(())).await;
        site.get("/a").await;
        assert_eq!(upstream.requests.borrow().len(), 2);
    });
}

#[test]
fn a_task_without_workers_is_reported() {
    in_loop(async {
        let text = "[log.error]\npath = \"error.log\"\n[app.site]\nroot = \"www\"\n";
        let site = Site::with_config(&[], text);
        let (_link, other) = linked(&site.gateway);
        other.send(framed(kind::TASK, &[&named("site"), b"task"]));
        wait_for("the report", || {
            site.log("error.log").contains("site has no task workers").then_some(())
        })
        .await;
    });
}

#[test]
fn a_server_that_has_ended_is_forgotten() {
    in_loop(async {
        let (site, _upstream) = cached();
        let (link, other) = linked(&site.gateway);
        assert!(!link.is_needed(), "it has not taken over");
        link.succeed();
        assert!(link.is_needed());
        other.close();
        wait_for("the end", || site.gateway.links.borrow().is_empty().then_some(())).await;
        assert!(!link.is_needed() && link.is_quiet());
    });
}

#[test]
fn a_link_is_busy_until_its_frames_are_sent() {
    in_loop(async {
        let (site, _upstream) = cached();
        let (link, other) = linked(&site.gateway);
        assert!(link.is_quiet());
        ServerLink::send(&*link, vec![7; 4 << 20]);
        assert!(!link.is_quiet());
        assert_eq!(other.receive().await.map(|frame| frame.len()), Some(4 << 20));
        wait_for("quiet", || link.is_quiet().then_some(())).await;
    });
}

#[test]
fn the_old_server_announces_when_it_has_left_its_tasks() {
    in_loop(async {
        let (site, _upstream) = cached();
        let (link, other) = linked(&site.gateway);
        let before_ms = Wall::now().unix_us / 1000;
        link.leave_tasks(&site.gateway);
        let frame = other.receive().await.unwrap();
        let (kind, time) = frame.split_first().unwrap();
        let left_at_ms = u64::from_le_bytes(time.try_into().unwrap());
        assert_eq!(*kind, kind::LEFT);
        assert!((before_ms..=Wall::now().unix_us / 1000).contains(&left_at_ms));
        // The new server knows it from then on.
        other.send(frame.clone());
        wait_for("the announcement", || link.left_at_ms.get()).await;
        assert_eq!(link.left_at_ms.get(), Some(left_at_ms));
    });
}
