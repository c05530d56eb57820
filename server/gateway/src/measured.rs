//! [`Measured`]: the histograms of all threads together.
//!
//! Read by metrics and by the status. Invariant: a series is that of the whole server.

use crate::gateway::Gateway;
use crate::latencies::{Kind, Phase, Series};
use crate::tracing::Exported;
use outboard_admin_api::status::Latency;
use outboard_trace::histogram::Snapshot;
use std::collections::BTreeMap;

/// What was measured of each app, by its name.
#[derive(Default)]
pub(crate) struct Measured {
    pub(crate) series: BTreeMap<(Series, String), Snapshot>,
    /// `None` without traces.
    pub(crate) exported: Option<Exported>,
}

impl Measured {
    /// On all threads. Called on the lead's.
    pub(crate) async fn of(gateway: &Gateway) -> Self {
        let mut sum = Self::of_thread(gateway);
        let others = gateway.shards.on_followers(async |gateway| Self::of_thread(&gateway)).await;
        for other in others {
            for (key, snapshot) in other.series {
                sum.series.entry(key).or_default().add(&snapshot);
            }
            sum.exported = sum.exported.zip(other.exported).map(|(one, other)| one.plus(other));
        }
        sum
    }

    fn of_thread(gateway: &Gateway) -> Self {
        let generation = gateway.generation();
        let series = generation.apps.iter().flat_map(|app| {
            let name = &app.config.name;
            app.latencies.snapshots().map(|(series, found)| ((series, name.clone()), found))
        });
        let exported = generation.tracer.as_ref().map(|tracer| tracer.exported());
        Self { series: series.collect(), exported }
    }

    /// Quantiles of the durations of each app's requests, by kind, for the status.
    pub(crate) fn quantiles(&self) -> Vec<Latency> {
        let mut by_kind: BTreeMap<(&str, Option<Kind>), Snapshot> = BTreeMap::new();
        for ((series, app), snapshot) in &self.series {
            if series.phase == Phase::Total {
                for kind in [None, Some(series.kind)] {
                    by_kind.entry((app, kind)).or_default().add(snapshot);
                }
            }
        }
        let rows = by_kind.into_iter().map(|((app, kind), snapshot)| {
            let quantile = |share| snapshot.quantile_us(share).unwrap_or_default();
            Latency {
                app: app.to_owned(),
                kind: kind.map_or("all", Kind::name).to_owned(),
                count: snapshot.count(),
                p50_us: quantile(0.5),
                p90_us: quantile(0.9),
                p99_us: quantile(0.99),
            }
        });
        rows.collect()
    }
}
