#include "standing.h"

#include <map>

namespace emulator
{

namespace
{

// As in works.def.
const char *KindName(unsigned kind)
{
    static const char *const names[] = {
#define RONDO_WORK(id, ...) #id,
#include "device/works.def"
#undef RONDO_WORK
    };
    return kind < sizeof(names) / sizeof(names[0]) ? names[kind] : "unknown work";
}

} // namespace

std::string Reporter::TeamName(const Team &team) const
{
    if (team.is_actor)
        return "actor " + team.name;
    return "rank " + std::to_string(team.rank) + " block " + std::to_string(team.block) + " role " +
           std::to_string(team.role) + " launch " + std::to_string(team.launch);
}

std::string Reporter::Standing(const Lane &lane) const
{
    std::string text;

    if (lane.work)
        text = std::string(KindName(lane.work->kind)) + " (work " + std::to_string(lane.work_index) +
               ", operation number " + std::to_string(lane.work->number) + "): ";
    text += lane.operation;
    if (lane.state == State::LINE)
        text += " " + machine_.memory().Describe(lane.waited->address) + " to reach " +
                std::to_string(static_cast<int64_t>(lane.target)) + ", it is " +
                std::to_string(static_cast<int64_t>(lane.waited->Value()));
    if (lane.state == State::FLAG)
        text += " that comes with " + machine_.memory().Describe(lane.bed);
    return text + ", in " + lane.site.function + ":" + std::to_string(lane.site.line);
}

Failure Reporter::Make(Fault kind, const std::string &what, const Lane *by)
{
    std::string text = std::string(FaultName(kind)) + ": " + what + "\n";

    if (by)
        text += "  noticed by " + TeamName(*by->of) + " lane " + std::to_string(by->lane) + ": " +
                Standing(*by) + "\n";
    for (auto &team : machine_.teams_) {
        if (team->done == team->lanes.size())
            continue;
        text += "  " + TeamName(*team) + "\n";
        std::map<std::string, std::string> ranges; // of lanes that stand alike
        for (size_t i = 0; i < team->lanes.size();) {
            std::string standing = Standing(team->lanes[i]);
            size_t end = i + 1;
            while (end < team->lanes.size() && Standing(team->lanes[end]) == standing)
                end++;
            std::string &list = ranges[standing];
            list += (list.empty() ? "" : ", ") + std::to_string(i) +
                    (end - i > 1 ? ".." + std::to_string(end - 1) : "");
            i = end;
        }
        for (auto &[standing, lanes] : ranges)
            text += "    lanes " + lanes + ": " + standing + "\n";
    }
    return {kind, text};
}

} // namespace emulator
