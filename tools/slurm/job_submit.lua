-- nvtaskset for Slurm: --tpcs and --gpcs become a request for shards, which Slurm counts and places.
--
-- With JobSubmitPlugins=lua, this is job_submit.lua beside slurm.conf, on the controller. A site that has such a file puts
-- this one beside it as nvtaskset.lua, and calls it first in slurm_job_submit:
--
--     dofile("/etc/slurm/nvtaskset.lua")
--     local result = nvtaskset_job_submit(job)
--     if result ~= slurm.SUCCESS then return result end
--
-- The two numbers are those of the cluster's GPUs (`nvtaskset -T`). Where they are wrong, jobs fail with the reason.
local TPCS = 66        -- of a GPU
local TPCS_OF_GPC = 9  -- of the largest GPC

-- What the plugin's option says: Slurm sends it with the job. Given twice, the last counts, as in the plugin.
local function option(job, name)
	local found
	for _, variable in pairs(job.spank_job_env or {}) do
		found = tostring(variable):match("SLURM_SPANK_OPTION_nvtaskset_" .. name .. "=(.*)$") or found
	end
	return found
end

-- Nil if it is not a valid one.
local function tpcs_of(text)
	local percent = text:match("^(%d+)%%$")
	local count = tonumber(percent or text:match("^%d+$"))
	if count and percent then
		count = count <= 100 and math.ceil(TPCS * count / 100) or nil
	end
	return count and count >= 1 and count <= TPCS and math.floor(count) or nil
end

local function refuse(reason)
	slurm.log_user("nvtaskset: " .. reason)
	return slurm.ERROR
end

local function asks_for_gpus(job)
	for _, name in ipairs({"tres_per_node", "tres_per_job", "tres_per_socket", "tres_per_task"}) do
		local wanted = job[name]
		if wanted and (wanted:find("shard") or wanted:find("gpu")) then
			return true
		end
	end
	return false
end

function nvtaskset_job_submit(job)
	local tpcs, gpcs = option(job, "tpcs"), option(job, "gpcs")
	if not tpcs and not gpcs then
		return slurm.SUCCESS
	end
	if tpcs and gpcs then
		return refuse("--tpcs and --gpcs: give one of them")
	end
	if asks_for_gpus(job) then
		return refuse("--tpcs and --gpcs ask for GPUs by themselves: leave --gres and --gpus out")
	end
	local count = tpcs and tpcs_of(tpcs) or gpcs and tpcs_of(gpcs) and tpcs_of(gpcs) * TPCS_OF_GPC
	if not count or count > TPCS then
		return refuse(tpcs and "--tpcs=" .. tpcs .. ": a GPU has " .. TPCS .. " TPCs"
			or "--gpcs=" .. gpcs .. ": a GPU has " .. math.floor(TPCS / TPCS_OF_GPC) .. " GPCs that are sure to be as large as this counts")
	end
	job.tres_per_node = (job.tres_per_node and job.tres_per_node .. "," or "") .. "gres:shard:" .. count
	return slurm.SUCCESS
end

function slurm_job_submit(job, _, _)
	return nvtaskset_job_submit(job)
end

function slurm_job_modify(_, _, _, _)
	return slurm.SUCCESS
end

return slurm.SUCCESS
