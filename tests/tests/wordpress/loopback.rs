//! WordPress visits itself: wp-cron in passing, Site Health while a client waits.

use crate::Sites;
use crate::writing::rest;
use outboard_e2e::{Client, Fifo, Scratch, Visit};

/// The next visitor's request makes WordPress call wp-cron.php on its own address, and the event
/// runs there.
pub(crate) fn wp_cron_calls_its_own_site(sites: &Sites) {
    let scratch = Scratch::new("cron");
    let reports: Vec<String> = [&sites.pair.reference, &sites.pair.subject]
        .into_iter()
        .enumerate()
        .map(|(number, site)| {
            let mut done = Fifo::at(scratch.path().join(format!("done-{number}")));
            let mut client = Client::new(site.address());
            let path = done.path().display().to_string().replace('/', "%2F");
            client.get(&format!("/?e2e_schedule={path}")).expect(200);
            client.get("/?after").expect(200);
            done.hear()
        })
        .collect();
    assert_eq!(reports[0], r#"{"script":"wp-cron.php","method":"POST","cron":true}"#);
    assert_eq!(reports[0], reports[1]);
}

pub(crate) fn site_health_reaches_its_own_site(admin: &mut Visit<'_>) {
    let target = "/wp-json/wp-site-health/v1/tests/loopback-requests";
    rest(admin, "GET", target, "").expect(200).holding("\"status\":\"good\"");
}
