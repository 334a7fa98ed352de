-- Claims a due entry of each of the $1 tenants that have the fewest claimed, and of none
-- more than its cap. Tenants that another claims from at the moment are passed over.
with open as (
  select t.id from tenants t
  where t.active < t.cap
    and exists (select from entries e where e.tenant = t.id and not e.claimed and e.due_at <= now())
  order by t.active
  limit $1
  for update skip locked
), picked as (
  select first.id, first.tenant from open, lateral (
    select e.id, e.tenant from entries e
    where e.tenant = open.id and not e.claimed and e.due_at <= now()
    order by e.due_at
    limit 1
    for update skip locked
  ) first
), taken as (
  update entries e set claimed = true, expires_at = now() + interval '1 hour'
  from picked p where e.id = p.id
  returning e.id, e.key
), counted as (
  update tenants t set active = active + 1
  from picked p where t.id = p.tenant
)
select id, key from taken
