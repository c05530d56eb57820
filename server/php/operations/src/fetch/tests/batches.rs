//! Batches of the entity store, which have a body like a fetch.

use super::*;

fn entities<'a>(namespace: &'a str, batch: &[u8]) -> Call<'a> {
    let batch_bytes = batch.len() as u32;
    Call::Entities(EntitiesCall { namespace: namespace.as_bytes(), batch_bytes })
}

/// A read of one record.
fn read_of(id: &str) -> Vec<u8> {
    let count = [&[1][..], &1_u32.to_le_bytes(), &(id.len() as u32).to_le_bytes()].concat();
    [&count, id.as_bytes()].concat()
}

#[test]
fn a_batch_of_the_entity_store_is_executed() {
    in_loop(async {
        let mut site = Fixture::new();
        let batch = read_of("none");
        site.request(ID, entities("default", &batch));
        site.request(ID, Call::FetchBody(&batch));
        assert_eq!(site.receive(ID).await, Received::Whole(200, vec![255; 4]));
        site.request(ID, entities("other", &batch));
        site.request(ID, Call::FetchBody(&batch));
        let Received::Whole(404, _) = site.receive(ID).await else { panic!("no such namespace") };
        // A batch without a body is invalid.
        site.request(ID, entities("default", b""));
        let Received::Whole(400, _) = site.receive(ID).await else { panic!("no batch") };
        site.wait_until_idle().await;
    });
}
