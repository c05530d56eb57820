//! The number of workers: what was written has to fit `max`.

use super::context::Context;
use crate::diagnostic::Kind;
use crate::raw::Pool;
use crate::scalar::{Count, Fault};

/// Defaults give way to a small `max`; what was written has to fit it.
pub(super) fn pool(written: &Pool, place: &[&str], context: &mut Context<'_>) -> Pool {
    let mut pool = written.clone();
    if let Count::Fixed(max) = pool.max {
        check(&pool, max, place, context);
        pool.min_idle = pool.min_idle.min(max);
    }
    pool
}

fn check(pool: &Pool, max: u32, place: &[&str], context: &mut Context<'_>) {
    let at = |key: &'static str| [place, &[key]].concat();
    if let Count::Fixed(min) = pool.min
        && min > max
    {
        let fault = Fault::new(format!("`min` is {min} and `max` is {max}"))
            .hint("`min` cannot be more than `max`");
        let key = if context.places.wrote(&at("min")) { "min" } else { "max" };
        context.value(&at(key), Kind::Conflict, fault);
    }
    if pool.min_idle > max && context.places.wrote(&at("min_idle")) {
        let fault = Fault::new(format!("`min_idle` is {} and `max` is {max}", pool.min_idle));
        context.value(
            &at("min_idle"),
            Kind::Conflict,
            fault.hint("`min_idle` cannot be more than `max`"),
        );
    }
}

#[cfg(test)]
mod tests {
    use crate::checked::testing::{APP, assert_error, site};
    use crate::*;

    #[test]
    fn an_inherited_error_is_reported_where_it_was_written() {
        let text = "[pool]\nmin = 9\n[app.site]\nroot = \"public\"\npool.max = 2\n";
        assert_error(text, Kind::Conflict, 2, "`min` is 9 and `max` is 2");
    }

    #[test]
    fn defaults_adapt_to_a_small_pool_but_explicit_values_do_not() {
        let pool = site("pool.max = 1\n").pool;
        assert_eq!((pool.max, pool.loopback_slots, pool.min_idle), (Count::Fixed(1), 1, 1));
        assert_error(
            &format!("{APP}pool = {{ max = 2, min_idle = 3 }}\n"),
            Kind::Conflict,
            3,
            "`min_idle`",
        );
        assert_error(&format!("{APP}pool = {{ max = 2, min = 3 }}\n"), Kind::Conflict, 3, "`min`");
    }
}
