-- Books that differ block buys since the first look that found so, however often they are looked at.
create or replace view blocks as
select account, reason, by_whom, at from halts
union all
select account, 'the books differ from the broker''s', 'execution', (
    select min(since.at) from looks since
    where since.account = newest.account and since.blocks and since.number > coalesce((
        select max(number) from looks
        where account = newest.account and verdict <> 'unknown' and not blocks
    ), 0)
)
from (select distinct on (account) * from looks where verdict <> 'unknown'
      order by account, number desc) newest
where blocks;
