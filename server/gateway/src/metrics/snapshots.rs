//! Metrics of the snapshots of booted scripts.

use super::page::Page;
use outboard_admin_api::status::Pool;

pub(super) fn write(page: &mut Page, pools: &[Pool]) {
    let snapshots = pools
        .iter()
        .filter_map(|pool| Some(([("app", pool.app.clone())], pool.snapshot.as_ref()?)));
    page.each(
        &snapshots.collect::<Vec<_>>(),
        &[
            (
                "outboard_php_snapshots_retired_total",
                "Snapshots that were out of date.",
                |snapshot| snapshot.retired,
            ),
            (
                "outboard_php_snapshot_failures_total",
                "Snapshots that could not be started.",
                |snapshot| snapshot.failures,
            ),
            ("outboard_php_snapshot_held", "Requests that wait for a new snapshot.", |snapshot| {
                snapshot.held
            }),
        ],
    );
}
