// What the types must refuse: tsc fails where a line below a directive compiles.
import createClient from "openapi-fetch";
import type { paths } from "./headway.js";

const headway = createClient<paths>();
const params = { path: { pool: "mail" } };

// @ts-expect-error there is no such path
await headway.GET("/v1/pool");
// @ts-expect-error there is no such operation of it
await headway.DELETE("/v1/pools");
// @ts-expect-error the pool must be named
await headway.GET("/v1/profiles/{pool}");
// @ts-expect-error the body needs a reason
await headway.PUT("/v1/pools/{pool}/override", { params, body: { workers: 5, for_s: 600 } });
// @ts-expect-error a mode is one of three words
await headway.PUT("/v1/pools/{pool}/pause", { params, body: { mode: "stop" } });

const { data } = await headway.GET("/v1/pools");
// @ts-expect-error there is no answer where there was an error
data.pools;
for (const pool of data?.pools ?? []) {
  // @ts-expect-error what is not known is null
  const workers: number = pool.running_workers;
  // @ts-expect-error there is no such key
  console.log(workers, pool.runing_workers);
}
