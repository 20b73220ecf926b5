//! Sales and readers of an item for the page of its owner.

use std::collections::BTreeMap;

use pages::console::{ItemDay, ItemSales};
use store::{CountOfDay, ItemKind, ItemOfSeller};
use types::Timestamp;

use super::money;
use crate::call::cx::Cx;
use crate::error::ApiError;
use crate::ops::page_kit::instant;

/// Days of the charts.
const DAYS: i64 = 30;
/// Days whose sales are counted apart.
const LATELY_DAYS: i64 = 7;
/// Sales that are listed.
const LISTED: u32 = 20;

/// Returns the sales and readers of an own item. `is_priced` says that it can be bought now, `readers` how many read it.
pub(in crate::ops) async fn of(
    cx: &Cx,
    sold: ItemOfSeller<'_>,
    is_priced: bool,
    readers: u64,
) -> Result<ItemSales, ApiError> {
    let ledger = cx.app.store.money();
    let today = cx.now.day();
    let from = Timestamp::of_day(today + 1 - DAYS);
    let lately = Timestamp::of_day(today + 1 - LATELY_DAYS);
    let (rows, sums, sales, reads) = tokio::try_join!(
        ledger.sales_of_item(sold, LISTED),
        ledger.sums_of_item(sold, lately),
        ledger.days_of_item(sold, from),
        ledger.reader_days(sold.kind, sold.item, from)
    )?;
    Ok(ItemSales {
        // An item that is free by now was perhaps sold before.
        is_sold: is_priced || !rows.is_empty(),
        sold: sums.sold,
        sold_lately: sums.sold_since,
        earned: sums.share,
        readers,
        reader_words: match sold.kind {
            ItemKind::Dataset => ("other account reads it", "other accounts read it"),
            ItemKind::Unit => ("agent of others read it", "agents of others read it"),
        },
        days: days(today, &sales, &reads),
        rows: rows.into_iter().map(money::sold_row).collect(),
    })
}

/// Returns one entry for each of the last days, those without anything too.
fn days(today: i64, sales: &[CountOfDay], reads: &[CountOfDay]) -> Vec<ItemDay> {
    let by_day =
        |counts: &[CountOfDay]| -> BTreeMap<i64, u64> { counts.iter().map(|count| (count.day, count.count)).collect() };
    let (sales, reads) = (by_day(sales), by_day(reads));
    let of = |counts: &BTreeMap<i64, u64>, day| counts.get(&day).copied().unwrap_or_default();
    (today + 1 - DAYS..=today)
        .map(|day| ItemDay {
            day: instant(Timestamp::of_day(day)),
            sales: of(&sales, day),
            readers: of(&reads, day),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_day_has_an_entry() {
        let count = |day, count| CountOfDay { day, count };
        let days = days(100, &[count(71, 2), count(100, 1)], &[count(100, 3), count(12, 9)]);
        assert_eq!(days.len(), 30);
        assert_eq!((days[0].sales, days[0].readers), (2, 0));
        assert_eq!((days[29].sales, days[29].readers), (1, 3));
        assert_eq!(days[28].sales + days[28].readers, 0);
    }
}
