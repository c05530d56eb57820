//! What is left of the processors: the same probes while scripts and others take all there are, and the
//! gateway has next to nothing to do. No flood can cost less than that.

use super::*;

/// Threads of ours that compute, beside as many scripts.
fn spinning(threads: usize, scripts: &'static [&'static str]) -> impl Fn(&Configured) -> Flood {
    move |site: &Configured| {
        let spin = Flood::of_clients(threads, || {
            let until = Instant::now() + DEADLINE / 10;
            while Instant::now() < until {
                std::hint::spin_loop();
            }
        });
        spin.and(Flood::of_requests(site.address(), scripts))
    }
}

#[test]
fn scripts_that_compute_without_end() {
    is_borne("processors: 2 scripts", classic(), spinning(0, &["/spin.php", "/spin.php"]));
}

#[test]
fn scripts_and_clients_that_compute_without_end() {
    is_borne("processors: 2 scripts + 2", classic(), spinning(2, &["/spin.php", "/spin.php"]));
}
