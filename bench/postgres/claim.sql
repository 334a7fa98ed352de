-- Claims up to $2 due entries of the tenant $1, and no more than its cap leaves. The
-- tenant's row is locked, so that two who claim at once can't both take the last place;
-- who finds it locked goes on to the next tenant.
with open as (
  select id, least($2::int, cap - active) as room
  from tenants where id = $1 and active < cap
  for update skip locked
), picked as (
  select id from entries
  where tenant = (select id from open) and not claimed and due_at <= now()
  order by due_at
  limit (select room from open)
  for update skip locked
), taken as (
  update entries e set claimed = true, expires_at = now() + interval '1 hour'
  from picked p where e.id = p.id
  returning e.id, e.key
), counted as (
  update tenants set active = active + (select count(*) from taken)
  where id = (select id from open)
)
select id, key from taken
