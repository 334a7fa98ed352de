create table tenants (
  id     text primary key,
  cap    int not null,
  active int not null default 0
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02);

create table entries (
  id         bigint generated always as identity primary key,
  tenant     text not null,
  key        text not null,
  due_at     timestamptz not null,
  claimed    boolean not null default false,
  expires_at timestamptz
) with (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02);

create index entries_due on entries (tenant, due_at) where not claimed;
