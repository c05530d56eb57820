//! Metrics of the processes of apps, by instance.

use super::page::Page;
use outboard_admin_api::status::Process;

pub(super) fn write(page: &mut Page, instances: &[Process]) {
    let labels = |one: &Process| {
        let number = one.instance.to_string();
        [("app", one.app.clone()), ("process", one.name.clone()), ("instance", number)]
    };
    let instances: Vec<_> = instances.iter().map(|one| (labels(one), one)).collect();
    page.each(
        &instances,
        &[
            ("outboard_process_running", "Whether the program of an instance runs.", |one| {
                u64::from(one.state == "running")
            }),
            ("outboard_process_starts_total", "Starts of the program.", |one| one.starts),
            ("outboard_process_memory_bytes", "Its memory, with what it has started.", |one| {
                one.memory_bytes
            }),
        ],
    );
}
